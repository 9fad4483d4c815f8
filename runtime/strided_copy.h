// SPDX-License-Identifier: Apache-2.0
// Copying elements between any two strided layouts and dtypes in host memory: the one engine behind
// copy_, fill_, clone, item and printing. Any thread that may touch both memories.
#pragma once

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

// Writes from's elements, converted, to to's, for every index of shape. The memories must not
// overlap. Makes no heap call.
void strided_copy(const Shape& shape, const StridedElements<std::byte>& to,
                  const StridedElements<const std::byte>& from) noexcept;

}  // namespace ebb::inline v0::detail
