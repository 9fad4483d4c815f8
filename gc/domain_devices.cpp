// SPDX-License-Identifier: Apache-2.0
// The devices of a domain: which there are, what they hold, and that one was lost.
#include "device_pools.h"
#include "domain_impl.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/error.h>
#include <ebb/gc/domain.h>

#include <algorithm>
#include <string>

namespace ebb::inline v0 {

detail::DeviceMemory* Domain::Impl::find_device(Device device) noexcept {
  for (detail::DeviceMemory& it : devices) {
    if (it.context().device() == device) {
      return &it;
    }
  }
  return nullptr;
}

bool Domain::Impl::captures_here() const noexcept {
  return std::any_of(devices.begin(), devices.end(),
                     [](const auto& it) { return it.context().is_capturing(); });
}

detail::DeviceMemory& Domain::Impl::require_device(Device device, const char* function) {
  EBB_REQUIRE(device != cpu, function,
              "the CPU has no streams: name a device of RuntimeOptions::devices");
  detail::DeviceMemory* const found = find_device(device);
  EBB_REQUIRE(found != nullptr, function, "the runtime does not use ", to_string(device),
              ": name it in RuntimeOptions::devices");
  return *found;
}

DeviceContext& Domain::device(Device device, const char* function) const {
  impl_->mark.require_own_process(function);
  return impl_->require_device(device, function).context();
}

DeviceContext& Domain::use(Stream stream, const char* function) const {
  impl_->require_usable(function);
  const detail::DeviceMemory& device = impl_->require_device(stream.device, function);
  device.context().require(stream, function);
  device.context().require_alive(function);
  device.context().join_capture(stream);
  impl_->note_use(device, stream);
  return device.context();
}

void Domain::wait_for(StreamPoint point, const char* function) const {
  const Milliseconds patience = impl_->options.device_deadline;
  const std::string name = to_string(point.stream.device);
  DeviceContext& context = device(point.stream.device, function);
  context.require_no_capture(function);
  if (!context.wait_until(point, deadline_after(steady_clock(), patience))) {
    throw DeviceError(function, 0, name,
                      "stream " + std::to_string(point.stream.id) + " was not done after " +
                          std::to_string(patience.count()) + " ms");
  }
}

MemoryStats Domain::memory(Device device) const noexcept {
  if (device == cpu) {
    return memory();
  }
  const detail::DeviceMemory* const found = impl_->find_device(device);
  return found != nullptr ? found->memory.stats() : MemoryStats{};
}

MemoryStats Domain::pinned_memory(Device device) const noexcept {
  const detail::DeviceMemory* const found = impl_->find_device(device);
  return found != nullptr ? found->pinned.stats() : MemoryStats{};
}

bool Domain::has_lost_device() const noexcept {
  const auto is_lost = [](const auto& device) { return device.context().is_lost(); };
  return std::any_of(impl_->devices.begin(), impl_->devices.end(), is_lost);
}

Bytes Domain::empty_cache(Device device) {
  constexpr const char* function = "Runtime::empty_cache";
  require_usable(function);
  run_deferred();
  if (device == cpu) {
    return trim();
  }
  const detail::DeviceMemory& of = impl_->require_device(device, function);
  if (of.memory.made() == nullptr && of.pinned.made() == nullptr) {
    return {};
  }
  of.context().require_no_capture(function);
  const Milliseconds patience = impl_->options.device_deadline;
  Bytes given;
  for (int pass = 0; pass < 2; ++pass) {  // what several streams have used is one's after the first
    if (!of.context().wait_for_all(deadline_after(steady_clock(), patience))) {
      throw DeviceError(function, 0, to_string(device),
                        "its work was not done after " + std::to_string(patience.count()) + " ms");
    }
    given += of.memory.trim() + of.pinned.trim();
  }
  return given;
}

CacheInfo Domain::cache_info(Device device) const {
  if (device == cpu) {
    return {
        .memory = memory(), .limit = impl_->options.memory_limit, .pinned = {}, .pinned_limit = {}};
  }
  const detail::DeviceMemory& of = impl_->require_device(device, "Runtime::cache_info");
  return {.memory = of.memory.stats(),
          .limit = of.memory.limit(),
          .pinned = of.pinned.stats(),
          .pinned_limit = of.pinned.limit()};
}

void Domain::require_devices(const char* function) {
  for (const detail::DeviceMemory& it : impl_->devices) {
    if (!it.context().is_lost()) [[likely]] {
      continue;
    }
    const std::string reason = it.context().take_loss();
    if (!reason.empty()) {
      const std::string name = to_string(it.context().device());
      std::string text = name;
      text.append(" was lost, and nothing more is done on it: ").append(reason);
      log(LogLevel::error, text);
      throw DeviceError(function, it.context().loss_code(), name, "the device was lost: " + reason,
                        true);
    }
  }
}

}  // namespace ebb::inline v0
