// SPDX-License-Identifier: Apache-2.0
// Writing whole tensors: copy_, fill_, clone, and reading one element. Host memory only, until
// devices come. On the thread that holds the tensors.
#include "strided_copy.h"

#include <ebb/alloc/check.h>
#include <ebb/runtime/tensor.h>

#include <cstring>
#include <memory>

namespace ebb::inline v0 {

namespace {

// The addresses that a tensor with elements touches, as [first, past).
struct Extent {
  const std::byte* first;
  const std::byte* past;
};

Extent extent_of(const std::byte* data, DType dtype, const Shape& shape,
                 const detail::Strides& strides) {
  std::int64_t last = 0;
  for (int d = 0; d < shape.dims(); ++d) {
    last += (shape[d] - 1) * strides[static_cast<std::size_t>(d)];
  }
  return {data, data + static_cast<std::size_t>(last + 1) * size_of(dtype)};
}

bool repeats_elements(const Shape& shape, const detail::Strides& strides) {
  for (int d = 0; d < shape.dims(); ++d) {
    if (shape[d] > 1 && strides[static_cast<std::size_t>(d)] == 0) {
      return true;
    }
  }
  return false;
}

// The address order of pointers into different storages is only defined for integers.
bool overlap(const Extent& a, const Extent& b) {
  const auto number = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); };
  return number(a.first) < number(b.past) && number(b.first) < number(a.past);
}

}  // namespace

const Tensor& Tensor::copy_(const Tensor& other) const {
  require_host("Tensor::copy_");
  require_writable("Tensor::copy_");
  other.require_host("Tensor::copy_");
  EBB_REQUIRE(shape_ == other.shape_, "Tensor::copy_", "the shapes ", to_string(shape_), " and ",
              to_string(other.shape_), " differ");
  if (elements() == 0) {
    return *this;
  }
  if (dtype_ == other.dtype_ && is_contiguous() && other.is_contiguous()) {
    std::memmove(raw(), other.raw(), bytes().count());
    return *this;
  }
  EBB_REQUIRE(!repeats_elements(shape_, strides_), "Tensor::copy_",
              "this tensor repeats elements by expand(): clone() it first");
  const detail::StridedElements<std::byte> to{raw(), dtype_, strides_};
  const detail::StridedElements<const std::byte> from{other.raw(), other.dtype_, other.strides_};
  if (!overlap(extent_of(to.data, dtype_, shape_, strides_),
               extent_of(from.data, other.dtype_, shape_, other.strides_))) {
    detail::strided_copy(shape_, to, from);
    return *this;
  }
  const std::size_t bytes_needed = bytes().count();
  const std::unique_ptr<std::byte[]> scratch(new std::byte[bytes_needed]);
  detail::StridedElements<std::byte> middle{scratch.get(), dtype_, {}};
  std::int64_t stride = 1;
  for (auto d = static_cast<std::size_t>(dims()); d-- > 0;) {
    middle.strides[d] = stride;
    stride *= shape_.sizes_[d];
  }
  detail::strided_copy(shape_, middle, from);
  detail::strided_copy(shape_, to, {middle.data, dtype_, middle.strides});
  return *this;
}

const Tensor& Tensor::fill_(double value) const {
  require_host("Tensor::fill_");
  require_writable("Tensor::fill_");
  // Converted once, so that the loop only copies.
  std::byte element[sizeof(std::int64_t)]{};
  const auto* number = reinterpret_cast<const std::byte*>(&value);
  detail::strided_copy(Shape{}, {element, dtype_, {}}, {number, DType::f64, {}});
  detail::strided_copy(shape_, {raw(), dtype_, strides_}, {element, dtype_, {}});
  return *this;
}

Tensor Tensor::clone(Owner owner, Place at) const {
  require_host("Tensor::clone");
  EBB_REQUIRE(owner, "Tensor::clone", "the owner is empty: pass a Runtime or an Iteration");
  Tensor copy = empty(owner, shape_, dtype_, at);
  copy.copy_(*this);
  return copy;
}

Tensor Tensor::clone(Place at) const {
  require_defined("Tensor::clone");
  return clone(Owner::current("Tensor::clone"), at);
}

void Tensor::read_item(void* out, DType as) const {
  require_host("Tensor::item");
  EBB_REQUIRE(elements() == 1, "Tensor::item", "the shape ", to_string(shape_), " has ",
              std::to_string(elements()), " elements, not one");
  // As u8 a bool's byte is looked at: copied, a byte that is not 0 or 1 would be no C++ bool.
  const bool booleans = dtype_ == DType::boolean && as == DType::boolean;
  detail::strided_copy(Shape{}, {static_cast<std::byte*>(out), as, {}},
                       {raw(), booleans ? DType::u8 : dtype_, {}});
}

}  // namespace ebb::inline v0
