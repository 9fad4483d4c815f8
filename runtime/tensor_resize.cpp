// SPDX-License-Identifier: Apache-2.0
// Giving a tensor, and the storage that it is all of, another size. [alloc.wrap] On the thread that
// holds the tensor, with nobody else using the storage.
#include <ebb/alloc/check.h>
#include <ebb/runtime/tensor.h>

namespace ebb::inline v0 {

Tensor& Tensor::resize_(const Shape& shape) {
  constexpr const char* function = "Tensor::resize_";
  require_contiguous(function);
  require_host(function);
  require_writable(function);
  EBB_REQUIRE(offset_ == 0 && storage_.bytes() == bytes(), function,
              "the tensor is a view of a part of its storage: clone() it first");
  const auto count = static_cast<std::size_t>(shape.elements());
  if (count != static_cast<std::size_t>(elements())) {
    if (is_plain(dtype_)) {
      storage_.resize(Bytes{size_of(dtype_)} * count);
    } else {
      storage_.resize_elements(count);
    }
  }
  *this = Tensor(storage_, dtype_, shape);
  return *this;
}

}  // namespace ebb::inline v0
