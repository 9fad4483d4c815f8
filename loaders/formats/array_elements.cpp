// SPDX-License-Identifier: Apache-2.0
// Reading, converting and turning around all elements of an array. Any thread.
#include "array_elements.h"

#include "aligned_bytes.h"

#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

using Elements = std::shared_ptr<std::byte>;

// Copies elements of which the first dimension is the fastest, the last one fastest.
template <class Unit>
void copy_turned(const std::byte* from, std::byte* to, const Shape& shape) {
  const auto dims = static_cast<std::size_t>(shape.dims());
  std::array<std::uint64_t, max_dims> index{};
  std::array<std::uint64_t, max_dims> stride{};  // of from
  std::uint64_t elements = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    stride[d] = elements;
    elements *= static_cast<std::uint64_t>(shape[static_cast<int>(d)]);
  }
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::memcpy(to + i * sizeof(Unit), from + at * sizeof(Unit), sizeof(Unit));
    for (std::size_t d = dims; d-- > 0;) {
      at += stride[d];
      if (++index[d] < static_cast<std::uint64_t>(shape[static_cast<int>(d)])) {
        break;
      }
      at -= index[d] * stride[d];
      index[d] = 0;
    }
  }
}

Elements turned(const Elements& elements, const ArrayForm& form) {
  const std::size_t unit = size_of(form.format.dtype);
  Elements out = allocate_aligned(form.elements * unit);
  switch (unit) {
    case 1:
      copy_turned<std::uint8_t>(elements.get(), out.get(), form.shape);
      break;
    case 2:
      copy_turned<std::uint16_t>(elements.get(), out.get(), form.shape);
      break;
    case 4:
      copy_turned<std::uint32_t>(elements.get(), out.get(), form.shape);
      break;
    default:
      copy_turned<std::uint64_t>(elements.get(), out.get(), form.shape);
  }
  return out;
}

Elements converted(const ByteRange& range, const ArrayForm& form) {
  const std::size_t bytes = form.elements * form.format.unit;
  Elements raw;
  const std::byte* from = range.memory() != nullptr ? range.memory() + form.data : nullptr;
  if (from == nullptr) {
    raw = allocate_aligned(bytes);
    range.read_at(form.data, {raw.get(), bytes});
    from = raw.get();
    if (form.format.is_plain()) {
      return raw;
    }
  }
  Elements out = allocate_aligned(form.elements * size_of(form.format.dtype));
  if (const auto bad = convert_elements(form.format, from, out.get(), form.elements)) {
    range.fail(LoadErrorKind::shape, "data", form.data + *bad * form.format.unit,
               too_large_text(*bad));
  }
  return out;
}

}  // namespace

std::shared_ptr<const std::byte> array_elements(const ByteRange& range, const ArrayForm& form) {
  try {
    Elements elements = converted(range, form);
    return form.fortran_order && form.shape.dims() > 1 ? turned(elements, form)
                                                       : std::move(elements);
  } catch (const std::bad_alloc&) {
    range.fail(LoadErrorKind::memory, "data", form.data,
               "there is no memory for its " + std::to_string(form.elements) + " elements");
  }
}

std::string too_large_text(std::uint64_t element) {
  return "element " + std::to_string(element) +
         " is an unsigned number that i64 does not hold: save .astype('float64')";
}

}  // namespace ebb::inline v0::detail
