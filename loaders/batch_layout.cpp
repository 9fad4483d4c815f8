// SPDX-License-Identifier: Apache-2.0
// Offsets and lengths of a batch's fields, and the padding of those that vary.
#include "batch_layout.h"

#include <ebb/alloc/block.h>
#include <ebb/alloc/check.h>
#include <ebb/runtime/half.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

namespace ebb::inline v0::detail {

namespace {

void check_field(const Field& field) {
  EBB_REQUIRE(field.sample_shape.dims() < max_dims, "Loader", "field \"", field.name,
              "\": a sample has at most ", std::to_string(max_dims - 1),
              " dimensions, since a batch adds one");
  EBB_REQUIRE(is_plain(field.dtype), "Loader", "field \"", field.name,
              "\": batches hold plain bytes, not strings");
  EBB_REQUIRE(!field.varies || field.sample_shape.dims() > 0, "Loader", "field \"", field.name,
              "\" varies: its sample_shape begins with the longest length");
}

template <class T>
BatchLayout::Element element(double value) {
  const T converted{static_cast<T>(value)};
  BatchLayout::Element bytes{};
  std::memcpy(bytes.data(), &converted, sizeof(T));
  return bytes;
}

BatchLayout::Element pad_of(const Field& field) {
  switch (field.dtype) {
    case DType::f16:
      return element<Half>(field.pad);
    case DType::bf16:
      return element<BFloat16>(field.pad);
    case DType::f32:
      return element<float>(field.pad);
    case DType::f64:
      return element<double>(field.pad);
    case DType::i8:
      return element<std::int8_t>(field.pad);
    case DType::i16:
      return element<std::int16_t>(field.pad);
    case DType::i32:
      return element<std::int32_t>(field.pad);
    case DType::i64:
      return element<std::int64_t>(field.pad);
    default:
      return element<std::uint8_t>(field.pad);
  }
}

std::size_t unit_of(const Field& field) {
  std::int64_t unit = 1;
  for (int dim = 1; dim < field.sample_shape.dims(); ++dim) {
    unit *= field.sample_shape[dim];
  }
  return static_cast<std::size_t>(unit);
}

}  // namespace

BatchLayout::BatchLayout(const Schema& its_schema, std::size_t batch) : schema(its_schema) {
  EBB_REQUIRE(!schema.fields.empty(), "Loader", "the schema of the data set has no field");
  Bytes end;
  for (const Field& field : schema.fields) {
    check_field(field);
    for (const Field& other : schema.fields) {
      EBB_REQUIRE(&other == &field || other.name != field.name, "Loader",
                  "two fields are called \"", field.name, "\"");
    }
    const auto elements = static_cast<std::size_t>(field.sample_shape.elements());
    const Bytes sample = Bytes{size_of(field.dtype)} * elements;
    spots.push_back({.dtype = field.dtype,
                     .varies = field.varies,
                     .offset = end.count(),
                     .row_bytes = sample.count(),
                     .row_elements = elements,
                     .unit_elements = field.varies ? unit_of(field) : elements});
    pads.push_back(pad_of(field));
    varies = varies || field.varies;
    constexpr std::size_t unit = default_align_cpu.value();
    end = Bytes{(end + sample * batch + Bytes{unit - 1}).count() / unit * unit};
  }
  slot_bytes = end.count();
}

std::int64_t BatchLayout::longest() const noexcept {
  std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  for (const Field& field : schema.fields) {
    longest = field.varies ? std::min(longest, field.sample_shape[0]) : longest;
  }
  return longest;
}

void BatchLayout::fit(std::span<FieldSpot> rows, std::int64_t length) const noexcept {
  for (FieldSpot& spot : rows) {
    if (spot.varies) {
      spot.row_elements = static_cast<std::size_t>(length) * spot.unit_elements;
      spot.row_bytes = spot.row_elements * size_of(spot.dtype);
    }
  }
}

void BatchLayout::pad(std::span<const FieldSpot> rows, std::byte* slot, std::size_t row,
                      std::int64_t length) const noexcept {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FieldSpot& spot = rows[i];
    if (!spot.varies) {
      continue;
    }
    const std::size_t size = size_of(spot.dtype);
    std::byte* const begin = slot + spot.offset + row * spot.row_bytes;
    std::byte* const end = begin + spot.row_bytes;
    std::byte* at = begin + static_cast<std::size_t>(length) * spot.unit_elements * size;
    for (; at < end; at += size) {
      std::memcpy(at, pads[i].data(), size);
    }
  }
}

}  // namespace ebb::inline v0::detail
