// SPDX-License-Identifier: Apache-2.0
// The lifetimes of one runtime: its owner records, its pool, its log. Shared by the runtime, its
// loops and loaders, and kept alive by the last storage. Thread-safe. In a forked child of the
// process that made it, what may throw throws ForkedError, and the rest does nothing. [rt.fork]
#pragma once

#include <ebb/alloc/pool.h>
#include <ebb/gc/clock.h>
#include <ebb/gc/log.h>
#include <ebb/gc/owner.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace ebb::inline v0 {

class DeviceContext;

// A device besides the CPU, and the limits of what is reserved there; 0 means none.
struct DomainDevice {
  std::shared_ptr<DeviceContext> context;
  Bytes limit{0};         // of its memory
  Bytes pinned_limit{0};  // of host memory that it copies from and to by itself
  Bytes size{0};          // all its memory; 0: not known
};

struct DomainOptions {
  LogHook log = {};          // empty: stderr
  Clock* clock = nullptr;    // null: the machine's; must outlive the last iteration
  Bytes memory_limit{0};     // of the runtime's pool; 0 means none
  bool bypass = false;       // every block straight from the system
  Source* source = nullptr;  // null: the system's; must outlive the last storage
  // Each once. No context of the driver's is made before something is asked of it.
  std::vector<DomainDevice> devices = {};
  // Asked on the thread whose request for so many bytes on a device was refused, after everything
  // else: frees what it can, and returns whether to ask again. May be empty.
  std::function<bool(Bytes bytes, Device device)> on_out_of_memory = {};
  // How long anything waits for a device before it throws DeviceError.
  Milliseconds device_deadline{60'000};
};

// The memory of one device, and the host memory that is pinned for it; limits are 0 where there is
// none. What is reserved and not live is cached: idle, or awaiting streams.
struct CacheInfo {
  MemoryStats memory;
  Bytes limit;
  MemoryStats pinned;
  Bytes pinned_limit;

  Bytes cached() const {
    return memory.reserved < memory.live ? Bytes{} : memory.reserved - memory.live;
  }
};

struct DomainStats {
  std::uint64_t storages_live = 0;     // charged to the runtime itself
  std::uint64_t storages_unowned = 0;  // ever made on a thread that had no owner
  std::uint64_t storages_late = 0;     // ever made for an owner that had closed
  std::uint64_t adopted_live = 0;      // stragglers that are still alive
  Bytes adopted_bytes;
  // Uses of devices' memory on streams that nobody has declared; counted at checks=full only.
  std::uint64_t undeclared_uses = 0;
};

class Domain : public std::enable_shared_from_this<Domain> {
 public:
  static std::shared_ptr<Domain> make(DomainOptions options);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  Domain(Domain&&) = delete;
  Domain& operator=(Domain&&) = delete;
  ~Domain();

  // Whether this process was forked from the one that made the domain.
  bool in_child() const noexcept;
  // Whether shutdown() has been called.
  bool has_ended() const noexcept;
  // Throws ForkedError in a child, and std::invalid_argument once the runtime has ended, with
  // "[function]" in front.
  void require_usable(const char* function) const;

  // A number that no other domain of this process has had.
  std::uint64_t serial() const noexcept;
  // The runtime's own owner: what outlives iterations.
  Owner long_lived() const noexcept;
  Clock& clock() const noexcept;
  void log(LogLevel level, std::string_view text) const noexcept;

  // Returns a pool whose storages keep this domain alive: a loader's own memory.
  Pool make_pool(std::string name, Bytes limit,
                 std::chrono::milliseconds limit_wait = std::chrono::milliseconds{0}) const;
  // Returns an owner that charges to pool, and no iteration waits for. It is closed by
  // close_loader_owner, before pool is destroyed; what is made later is charged to the runtime.
  Owner open_loader_owner(Pool& pool);
  void close_loader_owner(Owner owner) noexcept;

  DomainStats stats() const noexcept;
  MemoryStats memory() const noexcept;  // of the runtime's pool
  // Of the pool of a device, and of the pinned memory for it. All 0 where nothing was made yet.
  MemoryStats memory(Device device) const noexcept;
  MemoryStats pinned_memory(Device device) const noexcept;
  Bytes trim() noexcept;
  // The same for one device, after all that is queued there, within device_deadline. Throws
  // DeviceError.
  Bytes empty_cache(Device device);
  // Throws std::invalid_argument for a device that the domain does not have.
  CacheInfo cache_info(Device device) const;
  // Returns the context of a device. Throws std::invalid_argument, with function in brackets and
  // the remedy, for one that the domain does not have, and ForkedError in a child.
  DeviceContext& device(Device device, const char* function) const;
  // The same for who is about to queue work on stream: the iteration of this thread is not retired
  // before that is done, and where the thread captures it is part of the graph. Also throws
  // std::invalid_argument for a stream that is not known, and once the runtime has ended, and
  // DeviceError once the device is lost.
  DeviceContext& use(Stream stream, const char* function) const;
  // Waits until a device has come past point. Throws DeviceError at device_deadline.
  void wait_for(StreamPoint point, const char* function) const;
  // Whether one of the devices does nothing any more.
  bool has_lost_device() const noexcept;
  // Throws DeviceError, and logs why, when a device was lost of which that was not said yet.
  void require_devices(const char* function);
  // Releases on this thread all storages whose release was deferred. Returns whether there was any.
  bool run_deferred() noexcept;

  // Ends the runtime: reports live storages and gives idle memory back. A second call does
  // nothing; storages may go on living on any thread.
  void shutdown() noexcept;

  class Impl;
  Impl& impl() noexcept { return *impl_; }
  const Impl& impl() const noexcept { return *impl_; }

 private:
  explicit Domain(DomainOptions options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ebb::inline v0
