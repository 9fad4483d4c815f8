// SPDX-License-Identifier: Apache-2.0
// Views: tensors over the same storage with other sizes and strides. No view has an element that
// the tensor it was made of lacks, so none needs to look at the storage. Any thread.
#include "checked_dim.h"

#include <ebb/alloc/check.h>
#include <ebb/runtime/tensor.h>

#include <algorithm>
#include <utility>

namespace ebb::inline v0 {

Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const {
  require_defined("Tensor::narrow");
  const std::size_t d = detail::checked_dim(dim, dims(), "Tensor::narrow");
  const std::int64_t size = shape_.sizes_[d];
  EBB_REQUIRE(start >= 0 && length >= 0 && start <= size && length <= size - start,
              "Tensor::narrow", "start ", std::to_string(start), " and length ",
              std::to_string(length), " do not fit dimension ", std::to_string(d), " of size ",
              std::to_string(size));
  Tensor view = *this;
  view.shape_.sizes_[d] = length;
  // A view without elements begins where this one does: its own start may lie past the storage.
  if (view.shape_.elements() != 0) {
    view.offset_ += start * strides_[d];
  }
  return view;
}

Tensor Tensor::reshape(const Shape& shape) const {
  require_contiguous("Tensor::reshape");
  EBB_REQUIRE(shape.elements() == elements(), "Tensor::reshape", "the shape ", to_string(shape),
              " has ", std::to_string(shape.elements()), " elements, the tensor ",
              to_string(shape_), " has ", std::to_string(elements()));
  return {storage_, dtype_, shape, offset_};
}

Tensor Tensor::transpose(int a, int b) const {
  require_defined("Tensor::transpose");
  const std::size_t i = detail::checked_dim(a, dims(), "Tensor::transpose");
  const std::size_t j = detail::checked_dim(b, dims(), "Tensor::transpose");
  Tensor view = *this;
  std::swap(view.shape_.sizes_[i], view.shape_.sizes_[j]);
  std::swap(view.strides_[i], view.strides_[j]);
  return view;
}

Tensor Tensor::squeeze(int dim) const {
  require_defined("Tensor::squeeze");
  const std::size_t d = detail::checked_dim(dim, dims(), "Tensor::squeeze");
  EBB_REQUIRE(shape_.sizes_[d] == 1, "Tensor::squeeze", "dimension ", std::to_string(d),
              " has size ", std::to_string(shape_.sizes_[d]), ", not 1");
  Tensor view = *this;
  const auto at = static_cast<std::ptrdiff_t>(d);
  std::copy(shape_.sizes_.begin() + at + 1, shape_.sizes_.end(), view.shape_.sizes_.begin() + at);
  std::copy(strides_.begin() + at + 1, strides_.end(), view.strides_.begin() + at);
  --view.shape_.dims_;
  return view;
}

Tensor Tensor::unsqueeze(int dim) const {
  require_defined("Tensor::unsqueeze");
  EBB_REQUIRE(dims() < max_dims, "Tensor::unsqueeze", "the tensor already has ",
              std::to_string(max_dims), " dimensions");
  const std::size_t d = detail::checked_dim(dim, dims() + 1, "Tensor::unsqueeze");
  Tensor view = *this;
  const auto at = static_cast<std::ptrdiff_t>(d);
  std::copy_backward(shape_.sizes_.begin() + at, shape_.sizes_.end() - 1, view.shape_.sizes_.end());
  std::copy_backward(strides_.begin() + at, strides_.end() - 1, view.strides_.end());
  view.shape_.sizes_[d] = 1;
  view.strides_[d] = 1;  // of one element, so never used
  ++view.shape_.dims_;
  return view;
}

Tensor Tensor::expand(const Shape& shape) const {
  require_defined("Tensor::expand");
  const int added = shape.dims() - dims();
  bool fits = added >= 0;
  Tensor view = *this;
  view.shape_ = shape;
  view.strides_ = {};
  for (int d = 0; fits && d < dims(); ++d) {
    const auto from = static_cast<std::size_t>(d);
    const bool repeats = shape_[d] == 1;
    fits = repeats || shape_[d] == shape[d + added];
    const int to = d + added;
    view.strides_[static_cast<std::size_t>(to)] = repeats ? 0 : strides_[from];
  }
  EBB_REQUIRE(fits, "Tensor::expand", to_string(shape_), " cannot become ", to_string(shape),
              ": only dimensions of size 1 are repeated, and new ones come first");
  static_cast<void>(shape.elements());  // throws when the repeated count overflows
  return view;
}

}  // namespace ebb::inline v0
