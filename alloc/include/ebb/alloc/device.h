// SPDX-License-Identifier: Apache-2.0
// Where bytes live: the CPU, a CUDA device or the simulated device of the tests.
// Used by every module. Values: free to copy and use on any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ebb::inline v0 {

enum class DeviceKind : std::uint32_t { cpu, cuda, sim };

// One device. The CPU has index 0 always.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  std::uint32_t index = 0;

  constexpr bool operator==(const Device&) const = default;
};

inline constexpr Device cpu{};

// Returns "cpu", "cuda:0" or "sim:1".
std::string to_string(Device device);

// Returns the device that text names in the form of to_string ("cuda" means "cuda:0").
// Throws std::invalid_argument for anything else.
Device parse_device(std::string_view text);

}  // namespace ebb::inline v0
