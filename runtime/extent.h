// SPDX-License-Identifier: Apache-2.0
// Which elements a strided view touches, relative to its first. Used by tensors to stay inside
// their storage and by copies to find overlap. Pure: any thread.
#pragma once

#include "strided_copy.h"

#include <ebb/runtime/shape.h>

#include <cstdint>

namespace ebb::inline v0::detail {

// The lowest and the highest element touched, in elements from the first: low <= 0 <= high.
struct Extent {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Of a shape without a size of 0. Returns false when a distance overflows.
inline bool find_extent(const Shape& shape, const Strides& strides, Extent& out) noexcept {
  out = {};
  for (int d = 0; d < shape.dims(); ++d) {
    std::int64_t distance = 0;
    const std::int64_t stride = strides[static_cast<std::size_t>(d)];
    std::int64_t& end = stride < 0 ? out.low : out.high;
    if (__builtin_mul_overflow(shape[d] - 1, stride, &distance) ||
        __builtin_add_overflow(end, distance, &end)) {
      return false;
    }
  }
  return true;
}

// The strides of contiguous elements.
inline Strides contiguous_strides(const Shape& shape) noexcept {
  Strides strides{};
  std::int64_t stride = 1;
  for (int d = shape.dims(); d-- > 0;) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape[d] > 0 ? shape[d] : 1;
  }
  return strides;
}

}  // namespace ebb::inline v0::detail
