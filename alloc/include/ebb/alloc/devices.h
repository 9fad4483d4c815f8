// SPDX-License-Identifier: Apache-2.0
// The devices of this machine that this build of ebb can use. Used by runtimes and by ebb info.
// Any thread.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/device.h>

#include <string>
#include <vector>

namespace ebb::inline v0 {

struct DeviceInfo {
  Device device;
  std::string name;
  Bytes memory;  // in all; 0 when the system does not tell
};

// Returns the CPU and then the other devices, by index. Makes no context on any. May take a while:
// it asks the driver each time.
std::vector<DeviceInfo> devices();

// Returns the backend that this library was built with, "cuda" or "no_cuda". Never null.
const char* backend_name() noexcept;

// Returns why devices() lists no CUDA device, in one line, or an empty string when it lists one.
std::string no_cuda_reason();

}  // namespace ebb::inline v0
