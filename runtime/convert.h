// SPDX-License-Identifier: Apache-2.0
// How one number becomes another dtype's, defined for every value: saturating, truncating, NaN
// to 0 in integers, all but 0 to true; the 16-bit floats round to nearest. Used by strided copies.
// Pure functions: any thread.
#pragma once

#include <ebb/runtime/dtype.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ebb::inline v0::detail {

// The type that holds an element of D in memory. A bool's byte may come from a file and hold any
// value, which as a C++ bool would be undefined: hence u8.
template <DType D>
struct Stored;
template <>
struct Stored<DType::f16> {
  using Type = Half;
};
template <>
struct Stored<DType::bf16> {
  using Type = BFloat16;
};
template <>
struct Stored<DType::f32> {
  using Type = float;
};
template <>
struct Stored<DType::f64> {
  using Type = double;
};
template <>
struct Stored<DType::i8> {
  using Type = std::int8_t;
};
template <>
struct Stored<DType::u8> {
  using Type = std::uint8_t;
};
template <>
struct Stored<DType::i16> {
  using Type = std::int16_t;
};
template <>
struct Stored<DType::i32> {
  using Type = std::int32_t;
};
template <>
struct Stored<DType::i64> {
  using Type = std::int64_t;
};
template <>
struct Stored<DType::boolean> {
  using Type = std::uint8_t;
};
template <DType D>
using stored_t = typename Stored<D>::Type;

constexpr bool is_float16(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16;
}

// Elements are read and written by memcpy: the memory may be foreign, and was perhaps written as
// another type.
template <class T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

template <class To, class From>
To to_integer(From value) noexcept {
  if constexpr (std::is_floating_point_v<From>) {
    // Both bounds are powers of two (or 0), hence exact: the largest integer itself may not be.
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From past_high =
        static_cast<From>(std::uint64_t{1} << std::numeric_limits<To>::digits);
    if (std::isnan(value)) {
      return 0;
    }
    if (value <= low) {
      return std::numeric_limits<To>::min();
    }
    return value >= past_high ? std::numeric_limits<To>::max() : static_cast<To>(value);
  } else {
    // Every integer dtype's values are among int64's.
    return static_cast<To>(std::clamp(std::int64_t{value},
                                      std::int64_t{std::numeric_limits<To>::min()},
                                      std::int64_t{std::numeric_limits<To>::max()}));
  }
}

template <DType To, DType From>
stored_t<To> convert(stored_t<From> value) noexcept {
  if constexpr (To == From) {
    return value;
  } else if constexpr (is_float16(From)) {
    return convert<To, DType::f32>(static_cast<float>(value));
  } else if constexpr (is_float16(To) && From == DType::boolean) {
    return stored_t<To>(value != 0 ? 1 : 0);
  } else if constexpr (is_float16(To)) {
    return stored_t<To>(value);
  } else if constexpr (To == DType::boolean) {
    return value != 0 ? 1 : 0;
  } else if constexpr (From == DType::boolean) {
    return static_cast<stored_t<To>>(value != 0 ? 1 : 0);
  } else if constexpr (std::is_floating_point_v<stored_t<To>>) {
    // Doubles past the largest float become infinite: IEC 559 arithmetic.
    static_assert(std::numeric_limits<stored_t<To>>::is_iec559);
    return static_cast<stored_t<To>>(value);
  } else {
    return to_integer<stored_t<To>>(value);
  }
}

}  // namespace ebb::inline v0::detail
