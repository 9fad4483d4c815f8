// SPDX-License-Identifier: Apache-2.0
// Tensors: the invariant that every element lies in the storage, and access to the elements.
// A tensor object is used by one thread at a time.
#include "checked_dim.h"

#include <ebb/alloc/check.h>
#include <ebb/runtime/tensor.h>

#include <algorithm>
#include <utility>

namespace ebb::inline v0 {

Tensor::Tensor(Storage storage, DType dtype, const Shape& shape, std::int64_t offset)
    : storage_(std::move(storage)), offset_(offset), shape_(shape), dtype_(dtype) {
  EBB_REQUIRE(defined(), "Tensor", "the storage is empty");
  const std::int64_t elements = shape.elements();
  const std::size_t unit = size_of(dtype);
  const auto room = static_cast<std::int64_t>(storage_.bytes().count() / unit);
  EBB_REQUIRE(offset >= 0 && offset <= room && elements <= room - offset, "Tensor",
              std::to_string(elements), " elements from ", std::to_string(offset),
              " on pass the end of a storage of ", std::to_string(room), " ", to_string(dtype));
  EBB_REQUIRE(reinterpret_cast<std::uintptr_t>(storage_.data()) % unit == 0, "Tensor",
              "the storage is not aligned for ", to_string(dtype));
  // In range: elements() has checked the product of the sizes that are not 0.
  std::int64_t stride = 1;
  for (auto d = static_cast<std::size_t>(shape.dims()); d-- > 0;) {
    strides_[d] = stride;
    stride *= std::max<std::int64_t>(shape_.sizes_[d], 1);
  }
}

std::int64_t Tensor::size(int dim) const {
  require_defined("Tensor::size");
  return shape_.sizes_[detail::checked_dim(dim, dims(), "Tensor::size")];
}

std::int64_t Tensor::stride(int dim) const {
  require_defined("Tensor::stride");
  return strides_[detail::checked_dim(dim, dims(), "Tensor::stride")];
}

bool Tensor::is_contiguous() const noexcept {
  std::int64_t expected = 1;
  bool matches = true;
  for (auto d = static_cast<std::size_t>(dims()); d-- > 0;) {
    const std::int64_t size = shape_.sizes_[d];
    if (size == 0) {
      return true;
    }
    matches = matches && (size == 1 || strides_[d] == expected);
    expected *= size;
  }
  return matches;
}

const Tensor& Tensor::named(const char* name) const noexcept {
  if (defined()) {
    Storage(storage_).set_name(name);  // another handle: this view does not change
  }
  return *this;
}

std::byte* Tensor::raw() const noexcept {
  return static_cast<std::byte*>(storage_.data()) +
         static_cast<std::size_t>(offset_) * size_of(dtype_);
}

void* Tensor::checked_data(DType wanted, bool writable) const {
  require_defined("Tensor::data");
  EBB_REQUIRE(wanted == dtype_, "Tensor::data", "the elements are ", to_string(dtype_), ", not ",
              to_string(wanted));
  if (writable) {
    require_writable("Tensor::data");
  }
  return raw();
}

void Tensor::require_contiguous(const char* function) const {
  require_defined(function);
  EBB_REQUIRE(is_contiguous(), function, "the tensor is not contiguous: clone() it first");
}

void Tensor::require_host(const char* function) const {
  require_defined(function);
  EBB_REQUIRE(storage_.device() == cpu, function, "the tensor is on ", to_string(storage_.device()),
              ", where only its device can use it");
}

void Tensor::require_writable(const char* function) const {
  EBB_REQUIRE(!storage_.read_only(), function,
              "the tensor is read-only, like every batch: read it with data<const T>(), or clone() "
              "it and write the copy");
}

void Tensor::fail_undefined(const char* function) {
  detail::require_failed(function, "the tensor is undefined: it was never assigned, or moved from");
}

}  // namespace ebb::inline v0
