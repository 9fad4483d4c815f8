// SPDX-License-Identifier: Apache-2.0
// Looking for the devices that were asked for. Any thread.
#include "backend.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/alloc/open_devices.h>

#include <algorithm>
#include <string>
#include <utility>

namespace ebb::inline v0 {

namespace {

// Why a device is not among those that are present.
std::string why_missing(Device device, const std::vector<DeviceInfo>& present, Backend& backend,
                        bool is_given) {
  if (device.kind == DeviceKind::sim && !is_given) {
    return ": simulated devices need RuntimeOptions::backend: see SimMachine";
  }
  std::string list;
  for (const DeviceInfo& info : present) {
    list += (list.empty() ? "" : ", ") + to_string(info.device);
  }
  if (!list.empty()) {
    return (is_given ? ": the backend has " : ": there is ") + list;
  }
  const std::string reason = backend.missing();
  return reason.empty() ? "" : ": " + reason;
}

}  // namespace

std::vector<OpenDevice> open_devices(const char* function, const std::vector<Device>& wanted,
                                     std::shared_ptr<Backend> backend) {
  std::vector<OpenDevice> open;
  if (std::all_of(wanted.begin(), wanted.end(), [](Device device) { return device == cpu; })) {
    return open;
  }
  const bool is_given = backend != nullptr;
  if (!is_given) {
    backend = make_backend();
  }
  const std::vector<DeviceInfo> present = backend->devices();
  for (const Device device : wanted) {
    const bool is_open = std::any_of(open.begin(), open.end(), [device](const OpenDevice& it) {
      return it.info.device == device;
    });
    if (device == cpu || is_open) {
      continue;
    }
    const auto found =
        std::find_if(present.begin(), present.end(),
                     [device](const DeviceInfo& info) { return info.device == device; });
    EBB_REQUIRE(found != present.end(), function, "devices: there is no ", to_string(device),
                " here", why_missing(device, present, *backend, is_given));
    open.push_back({*found, std::make_shared<DeviceContext>(device, backend)});
  }
  return open;
}

}  // namespace ebb::inline v0
