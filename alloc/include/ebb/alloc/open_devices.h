// SPDX-License-Identifier: Apache-2.0
// The devices that a runtime is to use, with a backend that drives them. For ebb's modules only:
// not installed. Any thread.
#pragma once

#include <ebb/alloc/devices.h>

#include <memory>
#include <vector>

namespace ebb::inline v0 {

class Backend;
class DeviceContext;

struct OpenDevice {
  DeviceInfo info;
  std::shared_ptr<DeviceContext> context;  // the driver's is not made yet
};

// Returns those of wanted that are not the CPU, each once. Without a backend it makes the one that
// this build has, if any is needed. Throws std::invalid_argument, with function in brackets, for a
// device that is not there, and says why if it is known.
std::vector<OpenDevice> open_devices(const char* function, const std::vector<Device>& wanted,
                                     std::shared_ptr<Backend> backend);

}  // namespace ebb::inline v0
