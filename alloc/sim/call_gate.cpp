// SPDX-License-Identifier: Apache-2.0
// Counting and refusing. Any thread.
#include "sim/call_gate.h"

#include <ebb/alloc/error.h>

namespace ebb::inline v0 {

namespace {

constexpr std::array<const char*, sim_calls> names{
    "cudaFree",
    "cuMemAddressReserve",
    "cuMemCreate",
    "cuMemUnmap",
    "cuMemAddressFree",
    "mmap",
    "cudaHostRegister",
    "cudaHostUnregister",
    "munmap",
    "cudaStreamCreateWithFlags",
    "cudaStreamGetDevice",
    "cudaStreamDestroy",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
    "cudaEventRecord",
    "cudaEventQuery",
    "cudaStreamWaitEvent",
    "cudaMemcpyAsync",
    "cudaMemcpy2DAsync",
    "cudaMemsetAsync",
    "cudaLaunchHostFunc",
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "cudaGraphLaunch",
    "cudaGraphExecDestroy",
};

const char* reason_of(int code) {
  switch (code) {
    case sim_error::invalid_value:
      return "invalid argument";
    case sim_error::out_of_memory:
      return "out of memory";
    case sim_error::shutting_down:
      return "driver shutting down";
    case sim_error::illegal_state:
      return "the operation cannot be performed in the present state";
    case sim_error::illegal_address:
      return "an illegal memory access was encountered";
    case sim_error::not_permitted:
      return "operation not permitted";
    case sim_error::capture_unsupported:
      return "operation not permitted when stream is capturing";
    case sim_error::capture_invalidated:
      return "operation failed due to a previous error during capture";
    case sim_error::capture_merge:
      return "operation would result in a merge of separate capture sequences";
    case sim_error::capture_unjoined:
      return "capturing stream has unjoined work";
    case sim_error::capture_isolation:
      return "dependency created on uncaptured work in another stream";
    case sim_error::captured_event:
      return "operation not permitted on an event last recorded in a capturing stream";
    case sim_error::capture_wrong_thread:
      return "attempt to end a thread-local capture sequence from another thread";
    default:
      return "simulated failure";
  }
}

// Per thread, so that a caller is known without a lock that would order it after a queue.
thread_local bool in_host_function = false;

}  // namespace

const char* name_of(SimCall call) noexcept {
  return names[static_cast<std::size_t>(call)];
}

void refuse(SimCall call, SimFault fault, Device device) {
  throw DeviceError(name_of(call), fault.code, to_string(device), reason_of(fault.code),
                    fault.is_lost);
}

void CallGate::enter(SimCall call, Device device) {
  require_own_process(call);
  const SimFault fault = verdict(call, device);
  if (fault.code != 0) {
    refuse(call, fault, device);
  }
}

bool CallGate::try_enter(SimCall call, Device device) noexcept {
  return !in_child() && verdict(call, device).code == 0;
}

SimFault CallGate::verdict(SimCall call, Device device) noexcept {
  Kind& entry = kind(call);
  entry.count.fetch_add(1, std::memory_order_relaxed);
  if (in_host_function) {
    note_violation(std::string(name_of(call)) + " called from a host function");
    return {sim_error::not_permitted, false};
  }
  if (is_down()) {
    return {sim_error::shutting_down, true};
  }
  if (const int code = lost_code(device); code != 0) {
    return {code, true};
  }
  if (entry.passes.load(std::memory_order_relaxed) < 0 ||
      entry.passes.fetch_sub(1, std::memory_order_relaxed) != 0) {
    return {0, false};
  }
  const SimFault fault{entry.code.load(std::memory_order_relaxed),
                       entry.is_lost.load(std::memory_order_relaxed)};
  if (fault.is_lost) {
    lose(device, fault.code);
  }
  return fault;
}

void CallGate::fail(SimCall call, std::uint64_t after, SimFault fault) noexcept {
  Kind& entry = kind(call);
  entry.code.store(fault.code, std::memory_order_relaxed);
  entry.is_lost.store(fault.is_lost, std::memory_order_relaxed);
  entry.passes.store(static_cast<std::int64_t>(after), std::memory_order_relaxed);
}

void CallGate::lose(Device device, int code) noexcept {
  int none = 0;
  lost_[device.index].compare_exchange_strong(none, code, std::memory_order_relaxed);
}

std::uint64_t CallGate::count(SimCall call) const noexcept {
  return kinds_[static_cast<std::size_t>(call)].count.load(std::memory_order_relaxed);
}

void CallGate::note_violation(const std::string& text) noexcept {
  const std::lock_guard lock(mutex_);
  violations_.push_back(text);
}

std::vector<std::string> CallGate::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

HostFunctionScope::HostFunctionScope() noexcept {
  in_host_function = true;
}

HostFunctionScope::~HostFunctionScope() {
  in_host_function = false;
}

}  // namespace ebb::inline v0
