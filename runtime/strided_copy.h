// SPDX-License-Identifier: Apache-2.0
// Copying elements between any two strided layouts and dtypes in host memory: the one engine behind
// copy_, fill_, clone, item and printing. Any thread that may touch both memories.
#pragma once

#include <ebb/alloc/check.h>
#include <ebb/runtime/dtype.h>
#include <ebb/runtime/shape.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

using Strides = std::array<std::int64_t, max_dims>;

// Elements in memory: the first one's address and the distances between them, in elements. All
// strides 0 is one element that repeats.
template <class Byte>
struct StridedElements {
  Byte* data;
  DType dtype;
  Strides strides{};
};

// Throws std::invalid_argument, naming both, when one is string and the other is not.
inline void require_convertible(DType from, DType to, const char* function) {
  EBB_REQUIRE(is_plain(from) == is_plain(to), function, "elements are not converted from ",
              to_string(from), " to ", to_string(to));
}

// Writes from's elements, converted, to to's, for every index of shape. The memories must not
// overlap, and the dtypes must be convertible. Makes no heap call, save for strings, which are
// assigned: that may throw std::bad_alloc, and leaves valid strings.
void strided_copy(const Shape& shape, const StridedElements<std::byte>& to,
                  const StridedElements<const std::byte>& from);

}  // namespace ebb::inline v0::detail
