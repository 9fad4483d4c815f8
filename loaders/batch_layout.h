// SPDX-License-Identifier: Apache-2.0
// Where the fields of a batch lie in its slot. Used by the loader and its batches; does not change.
#pragma once

#include <ebb/loaders/sample.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ebb::inline v0::detail {

struct BatchLayout {
  using Element = std::array<std::byte, 8>;

  Schema schema;
  std::vector<FieldSpot> spots;  // of the longest samples that there may be
  std::vector<Element> pads;     // one element of each field
  std::size_t slot_bytes = 0;
  bool varies = false;

  // Throws std::invalid_argument for a schema that cannot be, or when the sizes overflow.
  BatchLayout(const Schema& its_schema, std::size_t batch);

  // The most that length(index) may be: what all fields that vary have room for.
  std::int64_t longest() const noexcept;

  // Has rows be as long as a batch's longest sample, where they vary.
  void fit(std::span<FieldSpot> rows, std::int64_t length) const noexcept;
  // Fills a row up behind a sample of length, where it varies.
  void pad(std::span<const FieldSpot> rows, std::byte* slot, std::size_t row,
           std::int64_t length) const noexcept;
};

}  // namespace ebb::inline v0::detail
