// SPDX-License-Identifier: Apache-2.0
// An array of devices by index that only grows. Any thread.
#include "cuda/device_table.h"

#include <ebb/alloc/check.h>

namespace ebb::inline v0 {

DeviceTable::~DeviceTable() {
  for_each([](CudaDevice& device) { delete &device; });
}

CudaDevice& DeviceTable::get(Device device, const char* function) {
  if (CudaDevice* const known = find(device)) {
    return *known;
  }
  EBB_REQUIRE(device.kind == DeviceKind::cuda && device.index < devices_max, function,
              to_string(device), " is no CUDA device");
  const std::lock_guard lock(mutex_);
  if (CudaDevice* const known = find(device)) {
    return *known;
  }
  auto made = std::make_unique<CudaDevice>(device);
  devices_[device.index].store(made.get(), std::memory_order_release);
  count_.fetch_add(1, std::memory_order_release);
  return *made.release();
}

CudaDevice* DeviceTable::find(Device device) const noexcept {
  return device.kind == DeviceKind::cuda && device.index < devices_max
             ? devices_[device.index].load(std::memory_order_acquire)
             : nullptr;
}

const CudaDevice* DeviceTable::holder_of(const void* address) const noexcept {
  const CudaDevice* holder = nullptr;
  for_each(
      [&](const CudaDevice& device) { holder = device.pages.holds(address) ? &device : holder; });
  return holder;
}

bool DeviceTable::is_pinned(const void* address) const noexcept {
  bool is_held = false;
  for_each([&](const CudaDevice& device) { is_held |= device.pinned.holds(address); });
  return is_held;
}

}  // namespace ebb::inline v0
