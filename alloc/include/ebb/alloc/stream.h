// SPDX-License-Identifier: Apache-2.0
// A stream by value: a device and ebb's own number for one ordered queue of work on it.
// Numbers are never reused in a process, unlike driver handles. Free to copy, any thread.
#pragma once

#include <ebb/alloc/device.h>

#include <cstdint>

namespace ebb::inline v0 {

// Id 0 is the device's default stream; on the CPU all work is on stream 0.
struct Stream {
  Device device;
  std::uint32_t id = 0;

  constexpr bool operator==(const Stream&) const = default;
};

}  // namespace ebb::inline v0
