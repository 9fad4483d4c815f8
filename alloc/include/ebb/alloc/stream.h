// SPDX-License-Identifier: Apache-2.0
// A stream by value: a device and ebb's own number for one ordered queue of work on it.
// Numbers are never reused in a process, unlike driver handles; there may be 2^26 of them.
// Free to copy, any thread.
#pragma once

#include <ebb/alloc/device.h>

#include <cstdint>

namespace ebb::inline v0 {

// Id 0 is the device's default stream; on the CPU all work is on stream 0.
struct Stream {
  Device device;
  std::uint32_t id = 0;

  // Streams of a device that are alive at the same time differ in their lane; the default stream
  // has lane 0.
  static constexpr std::uint32_t lanes = 64;
  constexpr std::uint32_t lane() const { return id % lanes; }

  constexpr bool operator==(const Stream&) const = default;
};

// A moment in a stream's work: all that was queued when it was recorded. 0 is before everything.
struct StreamPoint {
  Stream stream;
  std::uint64_t number = 0;  // counts per lane

  constexpr bool operator==(const StreamPoint&) const = default;
};

}  // namespace ebb::inline v0
