// SPDX-License-Identifier: Apache-2.0
// The two 16-bit floating-point types: Half (IEEE binary16) and BFloat16 (the upper half of a
// binary32). They hold values; sums are made in float. Values: free to copy and use on any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace ebb::inline v0 {

namespace detail {

// A sign, exponent_bits and mantissa_bits make 16.
template <int exponent_bits, int mantissa_bits>
struct Float16Format {
  static constexpr int shift = 23 - mantissa_bits;  // what a float's mantissa has more
  static constexpr int bias_difference = 127 - ((1 << (exponent_bits - 1)) - 1);
  static constexpr std::uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;

  // Both ways compute every case and then choose, so that loops over them become vector code.
  static constexpr std::uint16_t from_float(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t payload = (magnitude & 0x7fffffu) >> shift;
    const std::uint32_t nan = infinity | payload | (payload != 0 ? 0u : quiet);
    const std::uint32_t past = rounded(magnitude - rebias);  // a carry ends in infinity
    const std::uint32_t normal = past > infinity ? infinity : past;
    const std::uint32_t number = magnitude >= normal_min ? normal : subnormal(magnitude);
    const std::uint32_t result = magnitude > 0x7f800000u ? nan : number;
    return static_cast<std::uint16_t>(sign | result);
  }

  static constexpr float to_float(std::uint16_t stored) noexcept {
    const std::uint32_t sign = (stored & 0x8000u) << 16;
    const std::uint32_t magnitude = stored & 0x7fffu;
    if constexpr (bias_difference == 0) {
      return std::bit_cast<float>(sign | magnitude << shift);
    } else {
      // Infinity and NaN have the largest exponent, here and there: the bias counts twice.
      const std::uint32_t normal =
          (magnitude << shift) + rebias + (magnitude >= infinity ? rebias : 0u);
      // Subnormal: a whole number of the smallest ones, which are normal floats.
      const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) *
                          std::bit_cast<float>(normal_min - (std::uint32_t{mantissa_bits} << 23));
      const std::uint32_t chosen =
          magnitude >= 1u << mantissa_bits ? normal : std::bit_cast<std::uint32_t>(small);
      return std::bit_cast<float>(sign | chosen);
    }
  }

 private:
  static constexpr std::uint32_t quiet = 1u << (mantissa_bits - 1);
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(bias_difference) << 23;
  // As a float: 2^-14 for Half, 2^-126 for BFloat16. Below it results are subnormal.
  static constexpr std::uint32_t normal_min = rebias + (1u << 23);

  // Shifts the excess mantissa out and rounds to nearest, ties to even.
  static constexpr std::uint32_t rounded(std::uint32_t value) noexcept {
    constexpr std::uint32_t half = (1u << (shift - 1)) - 1;
    return (value + half + ((value >> shift) & 1u)) >> shift;
  }

  static constexpr std::uint32_t subnormal(std::uint32_t magnitude) noexcept {
    if constexpr (bias_difference == 0) {
      return rounded(magnitude);
    } else {
      // The last bit of the sum is worth the smallest subnormal, so the addition rounds.
      constexpr std::uint32_t unit_exponent =
          static_cast<std::uint32_t>(bias_difference + 1 - mantissa_bits + 23);
      constexpr std::uint32_t anchor = unit_exponent << 23;
      const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(anchor);
      return std::bit_cast<std::uint32_t>(sum) - anchor;
    }
  }
};

// Rounds to a float so that a second rounding to 16 bits gives what one alone would: what is lost
// is noted in the last bit ("round to odd").
constexpr float odd_float(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) {
    return nearest;
  }
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const double back = nearest;
  bits -= (value < 0 ? back < value : back > value) ? 1u : 0u;
  return std::bit_cast<float>(bits | 1u);
}
constexpr float odd_float(std::uint64_t magnitude, bool negative) noexcept {
  if (magnitude >> 40 != 0) {  // more than 24 bits above bit 16, which takes the note
    const std::uint64_t lost = magnitude & 0xffffu;
    magnitude = (magnitude - lost) | (lost != 0 ? 0x10000u : 0u);
  }
  const auto exact = static_cast<double>(magnitude);
  return odd_float(negative ? -exact : exact);
}

template <class T>
concept Number = std::is_arithmetic_v<T>;

}  // namespace detail

// A 16-bit value that converts to float exactly, and from numbers with rounding to nearest, ties
// to even; what is too large becomes infinite. NaNs keep the upper bits of their payload.
template <int exponent_bits, int mantissa_bits>
class Float16 {
  using Format = detail::Float16Format<exponent_bits, mantissa_bits>;

 public:
  constexpr Float16() noexcept = default;
  template <detail::Number T>
  constexpr explicit Float16(T value) noexcept : bits_(Format::from_float(as_float(value))) {}

  constexpr operator float() const noexcept {  // NOLINT(google-explicit-constructor): exact
    return Format::to_float(bits_);
  }

  static constexpr Float16 from_bits(std::uint16_t bits) noexcept {
    Float16 value;
    value.bits_ = bits;
    return value;
  }
  constexpr std::uint16_t bits() const noexcept { return bits_; }

 private:
  template <class T>
  static constexpr float as_float(T value) noexcept {
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else if constexpr (std::is_floating_point_v<T>) {
      return detail::odd_float(static_cast<double>(value));
    } else {
      bool negative = false;
      if constexpr (std::is_signed_v<T>) {
        negative = value < 0;
      }
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): the sign is to be extended
      const auto magnitude = static_cast<std::uint64_t>(value);
      return detail::odd_float(negative ? 0 - magnitude : magnitude, negative);
    }
  }

  std::uint16_t bits_ = 0;
};

using Half = Float16<5, 10>;
using BFloat16 = Float16<8, 7>;

static_assert(sizeof(Half) == 2 && std::is_trivially_copyable_v<Half>);
static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16>);

}  // namespace ebb::inline v0
