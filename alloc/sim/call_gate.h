// SPDX-License-Identifier: Apache-2.0
// Where each call of the simulated driver passes: it is counted, and refused where a fault was
// ordered, the device is lost or the driver gone. Any thread, queues too. [alloc.sim]
#pragma once

#include <ebb/alloc/fork.h>
#include <ebb/alloc/sim.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// CUDA's numbers of the errors that the simulated driver finds itself.
namespace sim_error {
inline constexpr int invalid_value = 1;
inline constexpr int out_of_memory = 2;
inline constexpr int shutting_down = 4;
inline constexpr int illegal_state = 401;
inline constexpr int illegal_address = 700;
inline constexpr int not_permitted = 800;
inline constexpr int capture_unsupported = 900;
inline constexpr int capture_invalidated = 901;
inline constexpr int capture_merge = 902;
inline constexpr int capture_unjoined = 904;
inline constexpr int capture_isolation = 905;
inline constexpr int captured_event = 907;
inline constexpr int capture_wrong_thread = 908;
}  // namespace sim_error

// Returns the function of CUDA that a call stands for. Never null.
const char* name_of(SimCall call) noexcept;
[[noreturn]] void refuse(SimCall call, SimFault fault, Device device);

// All atomics are relaxed: who calls the driver is not ordered with another caller, nor with a
// queue, by passing here.
class CallGate {
 public:
  explicit CallGate(unsigned devices) : lost_(devices) {}

  // In a forked child nothing is locked: it is asked first. Throws ForkedError.
  bool in_child() const noexcept { return mark_.in_child(); }
  void require_own_process(SimCall call) const { mark_.require_own_process(name_of(call)); }

  // Throws DeviceError where the call is to fail.
  void enter(SimCall call, Device device);
  // The same for what cannot throw: false.
  bool try_enter(SimCall call, Device device) noexcept;

  void fail(SimCall call, std::uint64_t after, SimFault fault) noexcept;
  // The first code stays.
  void lose(Device device, int code) noexcept;
  bool is_lost(Device device) const noexcept { return lost_code(device) != 0; }
  void shut_down() noexcept { is_down_.store(true, std::memory_order_relaxed); }
  bool is_down() const noexcept { return is_down_.load(std::memory_order_relaxed); }

  std::uint64_t count(SimCall call) const noexcept;
  void note_violation(const std::string& text) noexcept;
  std::vector<std::string> violations() const;

 private:
  struct Kind {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::int64_t> passes{-1};  // before the fault; negative: no fault
    std::atomic<int> code{0};
    std::atomic<bool> is_lost{false};
  };

  Kind& kind(SimCall call) noexcept { return kinds_[static_cast<std::size_t>(call)]; }
  int lost_code(Device device) const noexcept {
    return lost_[device.index].load(std::memory_order_relaxed);
  }
  // Code 0: the call passes.
  SimFault verdict(SimCall call, Device device) noexcept;

  const detail::ForkMark mark_;
  std::array<Kind, sim_calls> kinds_;
  std::vector<std::atomic<int>> lost_;  // by device: the code, or 0
  std::atomic<bool> is_down_{false};
  mutable std::mutex mutex_;  // guards violations_; callers only, no queue
  std::vector<std::string> violations_;
};

// While one lives, this thread runs a host function, which may not call the driver.
class HostFunctionScope {
 public:
  HostFunctionScope() noexcept;
  HostFunctionScope(const HostFunctionScope&) = delete;
  HostFunctionScope& operator=(const HostFunctionScope&) = delete;
  HostFunctionScope(HostFunctionScope&&) = delete;
  HostFunctionScope& operator=(HostFunctionScope&&) = delete;
  ~HostFunctionScope();
};

}  // namespace ebb::inline v0
