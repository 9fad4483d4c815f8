// SPDX-License-Identifier: Apache-2.0
// Elements of files made elements of tensors. Any thread.
#include "element_format.h"

#include <algorithm>
#include <cstring>

namespace ebb::inline v0::detail {

namespace {

template <std::size_t unit>
void copy_reversed(const std::byte* from, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count * unit; i += unit) {
    std::reverse_copy(from + i, from + i + unit, to + i);
  }
}

void copy(const ElementFormat& format, const std::byte* from, std::byte* to,
          std::size_t count) noexcept {
  if (!format.reversed || format.unit == 1) {
    std::memcpy(to, from, count * format.unit);
  } else if (format.unit == 2) {
    copy_reversed<2>(from, to, count);
  } else if (format.unit == 4) {
    copy_reversed<4>(from, to, count);
  } else {
    copy_reversed<8>(from, to, count);
  }
}

template <class From, class To>
void widen(bool reversed, const std::byte* from, std::byte* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    From value{};
    if (reversed) {
      copy_reversed<sizeof(From)>(from + i * sizeof(From), reinterpret_cast<std::byte*>(&value), 1);
    } else {
      std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    }
    const To wide = value;
    std::memcpy(to + i * sizeof(To), &wide, sizeof(To));
  }
}

}  // namespace

std::optional<std::size_t> convert_elements(const ElementFormat& format, const std::byte* from,
                                            std::byte* to, std::size_t count) noexcept {
  if (count == 0) {
    return std::nullopt;
  }
  if (format.step == ElementStep::widen) {
    if (format.unit == 2) {
      widen<std::uint16_t, std::int32_t>(format.reversed, from, to, count);
    } else {
      widen<std::uint32_t, std::int64_t>(format.reversed, from, to, count);
    }
    return std::nullopt;
  }
  copy(format, from, to, count);
  if (format.step == ElementStep::normalise) {
    std::transform(to, to + count, to, [](std::byte b) { return std::byte{b != std::byte{0}}; });
  } else if (format.step == ElementStep::check) {
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t value = 0;
      std::memcpy(&value, to + i * sizeof(value), sizeof(value));
      if (value < 0) {
        return i;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ebb::inline v0::detail
