// SPDX-License-Identifier: Apache-2.0
// Spreads the bits of a number, for the hashes and the repeatable noise of the exact search.
#pragma once

#include <cstdint>

namespace ebb::inline v0 {

// The finalizer of SplitMix64: a bijection.
constexpr std::uint64_t plan_mix(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace ebb::inline v0
