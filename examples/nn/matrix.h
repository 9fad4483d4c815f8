// SPDX-License-Identifier: Apache-2.0
// Plain addresses and strides of a matrix, for loops inside tasks and for kernels. Includes nothing
// of ebb's: the CUDA module has none of its symbols. Values: any thread.
#pragma once

#include <cstdint>

namespace ebb::inline v0::nn {

// T is float or const float. The memory is somebody else's, who keeps it.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;  // between rows, or between columns when transposed
  bool transposed = false;

  // constexpr, so that kernels may call it.
  constexpr T* row(std::int64_t i) const noexcept { return data + i * stride; }
  // The stride as libraries of products check it: that of a single row may be anything.
  std::int64_t leading() const noexcept {
    const std::int64_t length = transposed ? rows : columns;
    return stride > length ? stride : length;
  }
};

}  // namespace ebb::inline v0::nn
