// SPDX-License-Identifier: Apache-2.0
// What the math of every device demands of the shapes that it is given. Throw
// std::invalid_argument. Used by DeviceMath's implementations. Any thread.
#pragma once

#include "matrix_view.h"

#include <cstdint>
#include <string>

namespace ebb::inline v0::nn {

template <class C>
void require_product(MatrixView<const float> a, MatrixView<const float> b, MatrixView<C> c,
                     const char* function) {
  const auto shape = [](const auto& m) {
    return "[" + std::to_string(m.rows) + ", " + std::to_string(m.columns) + "]";
  };
  if (a.rows != c.rows || b.columns != c.columns || a.columns != b.rows) {
    refuse(function, "cannot multiply " + shape(a) + " by " + shape(b) + " into " + shape(c));
  }
}

// Returns a tensor of one row, which must have that many columns. name is what it is called.
template <class T>
MatrixView<T> row_of(const Tensor& tensor, std::int64_t columns, const char* name,
                     const char* function) {
  const MatrixView<T> row = rows_of<T>(tensor, function);
  if (row.rows != 1 || row.columns != columns) {
    refuse(function, std::string("needs a ") + name + " of shape [1, " + std::to_string(columns) +
                         "], not " + to_string(tensor.shape()));
  }
  return row;
}

inline void require_labels(const Tensor& labels, std::int64_t rows, const char* function) {
  if (labels.dims() != 1 || labels.size(0) != rows) {
    refuse(function, "needs one label for each of " + std::to_string(rows) +
                         " rows, not labels of shape " + to_string(labels.shape()));
  }
}

// Returns the view of w^T.
inline MatrixView<const float> transposed(MatrixView<const float> w) {
  std::swap(w.rows, w.columns);
  w.transposed = !w.transposed;
  return w;
}

}  // namespace ebb::inline v0::nn
