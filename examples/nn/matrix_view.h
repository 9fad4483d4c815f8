// SPDX-License-Identifier: Apache-2.0
// The plain addresses of tensors, checked once, for loops inside tasks: copying a tensor there
// would count references from every thread. Used by DeviceMath's implementations. Any thread.
#pragma once

#include "matrix.h"

#include <ebb/runtime/tensor.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace ebb::inline v0::nn {

[[noreturn]] inline void refuse(const char* function, const std::string& text) {
  throw std::invalid_argument(std::string("[") + function + "] " + text);
}

// Returns the view of a matrix whose rows are contiguous. The memory is the tensor's, which must
// outlive it.
template <class T>
MatrixView<T> rows_of(const Tensor& tensor, const char* function) {
  if (tensor.dims() != 2 || (tensor.stride(1) != 1 && tensor.size(1) != 1)) {
    refuse(function,
           "needs a matrix with contiguous rows, not one of shape " + to_string(tensor.shape()));
  }
  return {tensor.data<T>(), tensor.size(0), tensor.size(1), tensor.stride(0), false};
}

// As rows_of, but contiguous columns will do.
template <class T>
MatrixView<T> matrix_of(const Tensor& tensor, const char* function) {
  if (tensor.dims() == 2 && tensor.stride(1) != 1 && tensor.stride(0) == 1) {
    return {tensor.data<T>(), tensor.size(0), tensor.size(1), tensor.stride(1), true};
  }
  return rows_of<T>(tensor, function);
}

template <class A, class B>
void require_same_shape(const MatrixView<A>& a, const MatrixView<B>& b, const char* function) {
  if (a.rows != b.rows || a.columns != b.columns) {
    refuse(function, "shapes differ: [" + std::to_string(a.rows) + ", " +
                         std::to_string(a.columns) + "] and [" + std::to_string(b.rows) + ", " +
                         std::to_string(b.columns) + "]");
  }
}

}  // namespace ebb::inline v0::nn
