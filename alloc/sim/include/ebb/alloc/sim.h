// SPDX-License-Identifier: Apache-2.0
// Simulated devices on host memory, for tests on machines that have none: what runs on a GPU runs
// here, can be stopped at any operation, raced, and made to fail. In libebb-sim, which hosts may
// link to their tests. Any thread. [alloc.sim]
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/device.h>
#include <ebb/alloc/stream.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ebb::inline v0 {

class Backend;
class SimBackend;

struct SimOptions {
  unsigned devices = 1;
  Bytes memory{std::size_t{1} << 30};         // of each device
  Bytes page{std::size_t{2} << 20};           // a power of two, at least the system's
  Bytes pinned_memory{std::size_t{1} << 30};  // host memory that may be pinned for each device
};

// What a driver is called for. Errors name the function of CUDA that it stands for.
enum class SimCall : std::uint8_t {
  make_context,
  reserve,
  commit,
  decommit,
  release,
  reserve_pinned,
  pin,
  unpin,
  release_pinned,
  make_stream,
  borrow_stream,
  destroy_stream,
  make_event,
  destroy_event,
  record,
  query,
  wait,
  copy,
  copy_rows,
  fill,
  call,
  begin_capture,
  end_capture,
  launch,
  destroy_graph,
};
inline constexpr std::size_t sim_calls = static_cast<std::size_t>(SimCall::destroy_graph) + 1;

// How the driver is to fail, with CUDA's number for it. is_lost: and with it all that follows.
struct SimFault {
  int code = 999;
  bool is_lost = false;
};

struct SimCounts {
  std::array<std::uint64_t, sim_calls> calls{};  // also those that were refused
  std::uint64_t streams = 0;                     // these are alive, besides the default ones
  std::uint64_t events = 0;
  std::uint64_t graphs = 0;

  std::uint64_t of(SimCall call) const { return calls[static_cast<std::size_t>(call)]; }
};

struct SimMemory {
  Bytes capacity;
  Bytes committed;
  Bytes committed_peak;
};

// Some devices and their driver. Each stream is a queue with a thread of its own, which is started
// by its first work and named ebb/sim-N for device N. Nothing orders the host after a queue but an
// event that was seen done, and drain(): a thread sanitizer sees memory that is used again too
// early.
//
//   ebb::SimMachine machine({.devices = 2});
//   runtime_options.backend = machine.backend();
//   machine.hold(stream);        // from here on nothing of it runs
//   machine.step(stream, 2);     // but for two operations
//   machine.fail(ebb::SimCall::commit, 3, {.code = 2});
//   machine.resume(stream);
//   CHECK(machine.violations().empty());
//
// Copies from pageable host memory have read it when they return; those to it, and all of pinned
// memory, are done by the queue. Fresh device memory holds bytes of 0xa5.
class SimMachine {
 public:
  explicit SimMachine(SimOptions options = {});
  SimMachine(const SimMachine&) = delete;
  SimMachine& operator=(const SimMachine&) = delete;
  SimMachine(SimMachine&&) = delete;
  SimMachine& operator=(SimMachine&&) = delete;
  // Resumes what is held. The backend lives on where somebody has it; when it goes too, work that
  // was queued is dropped.
  ~SimMachine();

  std::shared_ptr<Backend> backend() const;
  Device device(unsigned index = 0) const;
  // Returns a stream of the host's, to be borrowed. It lives as long as the backend.
  void* host_stream(Device device);

  // ---- pace ----
  // A held stream finishes the operation that it is at. The calls without a stream are for all,
  // also those to come.
  void hold(Stream stream);
  void hold_all();
  void resume(Stream stream);
  void resume_all();
  // Has a held stream run up to count of its queued operations, and returns how many it has run at
  // the deadline: fewer where one waits for another stream.
  unsigned step(Stream stream, unsigned count = 1,
                std::chrono::milliseconds deadline = std::chrono::seconds(10));
  void set_delay(Stream stream, std::chrono::microseconds per_operation);
  void set_delay_all(std::chrono::microseconds per_operation);
  // Events of a stream are seen done by the host that much late, in order. For all streams: a
  // quarter, half, three quarters or the whole of it, by lane, so that streams overtake each other.
  void set_event_lag(Stream stream, std::chrono::microseconds lag);
  void set_event_lag_all(std::chrono::microseconds lag);
  // Whether nothing is queued or running. Orders nothing.
  bool is_idle() const;
  // Waits for that, as cudaDeviceSynchronize on all devices; false: not before the deadline.
  bool drain(std::chrono::milliseconds deadline = std::chrono::seconds(10));

  // ---- faults ----
  // Lets after calls of a kind pass, and has the next one fail: it throws DeviceError, or is
  // refused where it cannot throw. One fault per kind at a time.
  void fail(SimCall call, std::uint64_t after = 0, SimFault fault = {});
  // Loses a device, as an error of work on it does: all later calls for it fail.
  void lose(Device device, int code = 700);
  // What may be committed from now on; what is stays.
  void set_capacity(Device device, Bytes capacity);
  void set_pinned_capacity(Device device, Bytes capacity);
  // From now on every call fails as it does when a process ends: the driver has gone before.
  void shut_down();

  // ---- what happened ----
  SimCounts counts() const;
  SimMemory memory(Device device) const;
  SimMemory pinned_memory(Device device) const;
  // Returns what a device forbids but may not notice, in words: pages that went while queued work
  // used them, driver calls out of host functions.
  std::vector<std::string> violations() const;

 private:
  const std::shared_ptr<SimBackend> backend_;
};

}  // namespace ebb::inline v0
