// SPDX-License-Identifier: Apache-2.0
// How text becomes the elements of a field, for each element type. Used by open_csv. Any thread.
#pragma once

#include <ebb/loaders/dataset.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ebb::inline v0::detail {

enum class CellResult : std::uint8_t { read, no_number, out_of_range };

struct CsvElement {
  std::size_t bytes;
  // Reads a number, whatever the locale: spaces around it and a leading plus do not count. Floats
  // are rounded to nearest, with inf and nan; whole numbers may be written as 2.0; booleans are 0,
  // 1, true and false.
  CellResult (*parse)(std::string_view text, std::byte* out) noexcept;
  // Stores a number that the type has, else it is out_of_range.
  CellResult (*store)(double value, std::byte* out) noexcept;
  // Writes elements, one after the other, to a field of a sample.
  void (*write)(std::span<const std::byte> elements, const SampleWriter& writer, std::size_t field);
};

// Returns how elements of dtype are read; null for strings.
const CsvElement* csv_element(DType dtype) noexcept;

}  // namespace ebb::inline v0::detail
