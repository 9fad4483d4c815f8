// SPDX-License-Identifier: Apache-2.0
// Writing whole tensors: copy_, fill_, clone, and reading one element. Host memory only, until
// devices come. On the thread that holds the tensors.
#include "extent.h"
#include "strided_copy.h"

#include <ebb/alloc/check.h>
#include <ebb/runtime/tensor.h>

#include <array>
#include <cstring>
#include <memory>

namespace ebb::inline v0 {

namespace {

using Numbers = std::array<std::uintptr_t, 2>;

// The addresses that a tensor with elements touches, as [first, past). Numbers, since the order of
// pointers into different storages is only defined for those.
Numbers addresses_of(const std::byte* data, DType dtype, const Shape& shape,
                     const detail::Strides& strides) {
  detail::Extent extent;
  static_cast<void>(detail::find_extent(shape, strides, extent));  // it lies in its storage
  const auto unit = static_cast<std::int64_t>(size_of(dtype));
  return {reinterpret_cast<std::uintptr_t>(data + extent.low * unit),
          reinterpret_cast<std::uintptr_t>(data + (extent.high + 1) * unit)};
}

bool repeats_elements(const Shape& shape, const detail::Strides& strides) {
  for (int d = 0; d < shape.dims(); ++d) {
    if (shape[d] > 1 && strides[static_cast<std::size_t>(d)] == 0) {
      return true;
    }
  }
  return false;
}

bool overlap(const Numbers& a, const Numbers& b) {
  return a[0] < b[1] && b[0] < a[1];
}

// Copies by way of a temporary that overlaps neither. The temporary is memory of the system's heap.
template <class T>
void copy_through(std::size_t count, const Shape& shape,
                  const detail::StridedElements<std::byte>& to,
                  const detail::StridedElements<const std::byte>& from) {
  const std::unique_ptr<T[]> scratch(new T[count]);
  auto* const middle = reinterpret_cast<std::byte*>(scratch.get());
  const detail::Strides strides = detail::contiguous_strides(shape);
  detail::strided_copy(shape, {middle, to.dtype, strides}, from);
  detail::strided_copy(shape, to, {middle, to.dtype, strides});
}

}  // namespace

const Tensor& Tensor::copy_(const Tensor& other) const {
  require_host("Tensor::copy_");
  require_writable("Tensor::copy_");
  other.require_host("Tensor::copy_");
  EBB_REQUIRE(shape_ == other.shape_, "Tensor::copy_", "the shapes ", to_string(shape_), " and ",
              to_string(other.shape_), " differ");
  detail::require_convertible(other.dtype_, dtype_, "Tensor::copy_");
  if (elements() == 0) {
    return *this;
  }
  if (dtype_ == other.dtype_ && is_plain(dtype_) && is_contiguous() && other.is_contiguous()) {
    std::memmove(raw(), other.raw(), bytes().count());
    return *this;
  }
  EBB_REQUIRE(!repeats_elements(shape_, strides_), "Tensor::copy_",
              "this tensor repeats elements by expand(): clone() it first");
  const detail::StridedElements<std::byte> to{raw(), dtype_, strides_};
  const detail::StridedElements<const std::byte> from{other.raw(), other.dtype_, other.strides_};
  if (!overlap(addresses_of(to.data, dtype_, shape_, strides_),
               addresses_of(from.data, other.dtype_, shape_, other.strides_))) {
    detail::strided_copy(shape_, to, from);
  } else if (is_plain(dtype_)) {
    copy_through<std::byte>(bytes().count(), shape_, to, from);
  } else {
    copy_through<std::string>(static_cast<std::size_t>(elements()), shape_, to, from);
  }
  return *this;
}

const Tensor& Tensor::fill_(double value) const {
  require_host("Tensor::fill_");
  require_writable("Tensor::fill_");
  detail::require_convertible(DType::f64, dtype_, "Tensor::fill_");
  // Converted once, so that the loop only copies.
  std::byte element[sizeof(std::int64_t)]{};
  const auto* number = reinterpret_cast<const std::byte*>(&value);
  detail::strided_copy(Shape{}, {element, dtype_, {}}, {number, DType::f64, {}});
  detail::strided_copy(shape_, {raw(), dtype_, strides_}, {element, dtype_, {}});
  return *this;
}

const Tensor& Tensor::fill_(std::string_view value) const {
  require_host("Tensor::fill_");
  require_writable("Tensor::fill_");
  detail::require_convertible(DType::string, dtype_, "Tensor::fill_");
  const std::string element(value);
  const auto* const text = reinterpret_cast<const std::byte*>(&element);
  detail::strided_copy(shape_, {raw(), dtype_, strides_}, {text, DType::string, {}});
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

Tensor Tensor::to(Owner owner, Place at) const {
  require_host("Tensor::to");
  EBB_REQUIRE(owner, "Tensor::to", "the owner is empty: pass a Runtime or an Iteration");
  EBB_REQUIRE(owner.stream().device == cpu, "Tensor::to", "copies from cpu to ",
              to_string(owner.stream().device), " are not supported yet");
  return clone(owner, at);
}

Tensor Tensor::to(Device device, Place /*at*/) const {
  require_defined("Tensor::to");
  EBB_REQUIRE(device == storage_.device(), "Tensor::to", "copies from ",
              to_string(storage_.device()), " to ", to_string(device), " are not supported yet");
  return *this;
}

Tensor Tensor::to(DType dtype, Place at) const {
  require_host("Tensor::to");
  if (dtype == dtype_) {
    return *this;
  }
  detail::require_convertible(dtype_, dtype, "Tensor::to");
  Tensor converted = empty(Owner::current("Tensor::to"), shape_, dtype, at);
  converted.copy_(*this);
  return converted;
}

void Tensor::read_item(void* out, DType as) const {
  require_host("Tensor::item");
  EBB_REQUIRE(elements() == 1, "Tensor::item", "the shape ", to_string(shape_), " has ",
              std::to_string(elements()), " elements, not one");
  detail::require_convertible(dtype_, as, "Tensor::item");
  // As u8 a bool's byte is looked at: copied, a byte that is not 0 or 1 would be no C++ bool.
  const bool booleans = dtype_ == DType::boolean && as == DType::boolean;
  detail::strided_copy(Shape{}, {static_cast<std::byte*>(out), as, {}},
                       {raw(), booleans ? DType::u8 : dtype_, {}});
}

}  // namespace ebb::inline v0
