// SPDX-License-Identifier: Apache-2.0
// Numbers in text, by std::from_chars: the same in every locale. Any thread.
#include "csv_element.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>
#include <type_traits>

namespace ebb::inline v0::detail {

namespace {

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  text = text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  return text;
}

template <class Number>
CellResult read_number(std::string_view text, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    return CellResult::no_number;
  }
  return error == std::errc{} ? CellResult::read : CellResult::out_of_range;
}

// What is too small for a float is rounded, not refused.
CellResult read_number(std::string_view text, float& number) noexcept {
  CellResult result = read_number<float>(text, number);
  double wide = 0;
  if (result == CellResult::out_of_range && read_number<double>(text, wide) == CellResult::read &&
      std::abs(wide) < 1) {
    number = static_cast<float>(wide);
    result = CellResult::read;
  }
  return result;
}

template <class T>
void put(T value, std::byte* out) noexcept {
  std::memcpy(out, &value, sizeof(T));
}

template <class T>
CellResult store_as(double value, std::byte* out) noexcept {
  if constexpr (std::is_integral_v<T>) {
    // 2^digits is a double whatever the type; its largest number may be none.
    const double past = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double least = std::is_signed_v<T> ? -past : 0;
    if (!(value >= least && value < past) || std::trunc(value) != value) {
      return CellResult::out_of_range;
    }
    put(static_cast<T>(value), out);
  } else {
    const T stored = static_cast<T>(value);
    if constexpr (!std::is_same_v<T, double>) {
      if (std::isfinite(value) && !std::isfinite(static_cast<float>(stored))) {
        return CellResult::out_of_range;
      }
    }
    put(stored, out);
  }
  return CellResult::read;
}

bool is_word(std::string_view text, std::string_view lower) noexcept {
  if (text.size() != lower.size()) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c =
        text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
    if (c != lower[i]) {
      return false;
    }
  }
  return true;
}

template <class T>
CellResult parse_as(std::string_view cell, std::byte* out) noexcept {
  const std::string_view text = trimmed(cell);
  if constexpr (std::is_same_v<T, bool>) {
    if (is_word(text, "true") || is_word(text, "false")) {
      put(text.size() == 4, out);
      return CellResult::read;
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    float number = 0;
    const CellResult result = read_number(text, number);
    put(number, out);
    return result;
  }
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    T number = 0;
    const CellResult result = read_number(text, number);
    if (result != CellResult::no_number) {
      put(number, out);
      return result;
    }
  }
  double number = 0;
  const CellResult result = read_number<double>(text, number);
  if (result != CellResult::read) {
    return result;
  }
  // "2.5" is a number, but none of these.
  if (std::is_integral_v<T> && std::trunc(number) != number) {
    return CellResult::no_number;
  }
  return store_as<T>(number, out);
}

template <class T>
void write_as(std::span<const std::byte> elements, const SampleWriter& writer, std::size_t field) {
  const std::span<T> out = writer.field<T>(field);
  std::memcpy(out.data(), elements.data(), elements.size());
}

template <class T>
constexpr CsvElement element_of{sizeof(T), parse_as<T>, store_as<T>, write_as<T>};

}  // namespace

const CsvElement* csv_element(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16:
      return &element_of<Half>;
    case DType::bf16:
      return &element_of<BFloat16>;
    case DType::f32:
      return &element_of<float>;
    case DType::f64:
      return &element_of<double>;
    case DType::i8:
      return &element_of<std::int8_t>;
    case DType::u8:
      return &element_of<std::uint8_t>;
    case DType::i16:
      return &element_of<std::int16_t>;
    case DType::i32:
      return &element_of<std::int32_t>;
    case DType::i64:
      return &element_of<std::int64_t>;
    case DType::boolean:
      return &element_of<bool>;
    case DType::string:
      break;
  }
  return nullptr;
}

}  // namespace ebb::inline v0::detail
