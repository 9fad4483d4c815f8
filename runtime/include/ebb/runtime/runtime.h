// SPDX-License-Identifier: Apache-2.0
// The runtime: everything of ebb hangs off one. Several in one process do not see each other.
// Make and destroy it on one thread; use it from any.
#pragma once

#include <ebb/alloc/fork.h>
#include <ebb/alloc/stats.h>
#include <ebb/gc/domain.h>
#include <ebb/runtime/executor.h>
#include <ebb/runtime/tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace ebb::inline v0 {

class Backend;
class Runtime;

namespace detail {
class HostCalls;
HostCalls& host_calls(Runtime& rt) noexcept;
}  // namespace detail

enum class ExecutorKind { tbb, jthread };

struct RuntimeOptions {
  unsigned threads = 0;  // for step work, the calling thread included; 0: as many as cores
  ExecutorKind executor = ExecutorKind::tbb;
  // The host's own executors, borrowed: they must outlive the runtime. Null: ebb makes its own,
  // and starts no thread before the first task.
  Executor* step_executor = nullptr;
  Executor* load_executor = nullptr;
  std::vector<Device> devices = {cpu};  // no context is made on any other
  Bytes memory_limit{0};                // of the runtime's pool; 0 means none
  Source* source = nullptr;             // pages for CPU heaps; null: the system's
  Clock* clock = nullptr;               // behind every deadline; null: the machine's
  LogHook log = {};                     // must not throw; empty: stderr
  bool bypass = false;                  // every block straight from the system; EBB_BYPASS=1 too
  // Drives the devices. Null: what this library was built with; a SimMachine's is for tests.
  std::shared_ptr<Backend> backend = nullptr;
  // What is reserved on each device at most, and which part of its memory: the less of the two. 0
  // and 1 mean no limit.
  Bytes device_limit{0};
  double device_fraction = 1;
  Bytes pinned_limit{0};  // host memory that is pinned for each device; 0 means none
  // Asked, on its thread, when a request for so many bytes was refused, after everything else:
  // frees what it can, and returns whether to ask again. What it asks for itself is refused at
  // once.
  std::function<bool(Bytes bytes, Device device)> on_out_of_memory = {};
  // How long an open, a copy to the host or a finish() waits for a device before DeviceError.
  Milliseconds device_deadline{60'000};
};

// Takes no signal handler and no global_control. Storages may outlive it. [rt.global]
//
// In a forked child its parent's runtimes, loops, loaders and executors are of no use, since their
// threads are not there: calls throw ForkedError, functions that cannot throw and destructors do
// nothing, and the last reference to a storage releases nothing and runs no finalizer. Tensors may
// be read. A Runtime made in the child works; its executors are jthreads, as TBB's workers do not
// come back. [rt.fork]
class Runtime {
 public:
  // Throws std::invalid_argument for options that cannot be, naming the option, and for a device
  // that is not there, saying why.
  explicit Runtime(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  Runtime(Runtime&&) = delete;
  Runtime& operator=(Runtime&&) = delete;
  // Stops its threads and reports, by the log, storages that are still alive.
  ~Runtime();

  // Returns whom a new tensor is charged to: the thread's current owner when that belongs to this
  // runtime, else the runtime itself (long-lived).
  Owner owner() const noexcept;
  operator Owner() const noexcept { return owner(); }  // NOLINT(google-explicit-constructor)

  // Made at the first call unless the host brought one.
  Executor& step_executor();
  // Returns the executor of loader tasks for at least workers workers.
  Executor& load_executor(unsigned workers);
  const RuntimeOptions& options() const noexcept;
  const std::shared_ptr<Domain>& domain() const noexcept;

  MemoryStats memory() const noexcept { return domain()->memory(); }
  // Of a device's memory, and of the host memory that is pinned for it.
  MemoryStats memory(Device device) const noexcept { return domain()->memory(device); }
  MemoryStats pinned_memory(Device device) const noexcept {
    return domain()->pinned_memory(device);
  }
  DomainStats stats() const noexcept { return domain()->stats(); }
  // Gives idle pages back to the system and to the devices; returns how many bytes. Not what
  // devices may still use.
  Bytes trim() noexcept { return domain()->trim(); }
  // Waits until the device is done with all that is queued, and gives its idle pages back, and
  // those of host memory pinned for it; returns how many bytes. Throws DeviceError.
  Bytes empty_cache(Device device) { return domain()->empty_cache(device); }
  // What a device's memory is used for.
  CacheInfo cache_info(Device device) const { return domain()->cache_info(device); }
  // Releases, on this thread, all storages whose release was deferred (Storage::defer_release).
  // Returns whether there was any. Loops do it at each close; only a program without one needs it.
  bool run_deferred() noexcept { return domain()->run_deferred(); }
  // Set, for good, when the runtime's destructor begins: long work for it may stop. Any thread.
  std::shared_ptr<const std::atomic<bool>> ending() const noexcept;

 private:
  friend detail::HostCalls& detail::host_calls(Runtime& rt) noexcept;
  class Impl;
  detail::OwnedHere<Impl> impl_;
};

// Makes what this thread makes long-lived until it ends: for state that is made lazily deep inside
// a step, such as an optimizer's momentum. On the thread's current stream. [gc.owner]
class LongLived {
 public:
  explicit LongLived(Runtime& rt) noexcept
      : domain_(rt.domain()), scope_(domain_->long_lived().on(rt.owner().stream())) {}

 private:
  std::shared_ptr<Domain> domain_;  // the thread's owner for as long as this
  OwnerScope scope_;
};

// Moves the storage of tensor out of its iteration into the runtime's ownership and returns the
// tensor. Any thread. Keeping a view of a loader's batch copies it. [gc.keep]
[[nodiscard]] Tensor keep(const Tensor& tensor, Runtime& rt, Place at = Place::here());
// As above, in the runtime of the current owner.
[[nodiscard]] Tensor keep(const Tensor& tensor, Place at = Place::here());
// Returns a long-lived copy of the view's elements only.
[[nodiscard]] Tensor keep_copy(const Tensor& tensor, Runtime& rt, Place at = Place::here());

}  // namespace ebb::inline v0
