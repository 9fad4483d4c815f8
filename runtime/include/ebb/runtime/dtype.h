// SPDX-License-Identifier: Apache-2.0
// Element types of tensors. Values: free to copy and use on any thread.
#pragma once

#include <ebb/runtime/half.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ebb::inline v0 {

// Numbers, booleans, and strings: elements of type std::string, which tensors construct and
// destroy.
enum class DType : std::uint8_t { f16, bf16, f32, f64, i8, u8, i16, i32, i64, boolean, string };

// Returns the size of one element in bytes.
constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::string:
      return sizeof(std::string);
  }
  return 0;
}

// Returns the alignment of one element in bytes.
constexpr std::size_t align_of(DType dtype) noexcept {
  return dtype == DType::string ? alignof(std::string) : size_of(dtype);
}

// Returns whether elements are plain bytes that may be copied as such: all but strings.
constexpr bool is_plain(DType dtype) noexcept {
  return dtype != DType::string;
}

// Returns "f32", "i64", "bool", "string" and so on.
std::string_view to_string(DType dtype) noexcept;

namespace detail {
template <class T>
struct DTypeOf;  // no definition: T is no element type
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct DTypeOf<std::string> {
  static constexpr DType value = DType::string;
};
}  // namespace detail

// The DType of T.
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

}  // namespace ebb::inline v0
