// SPDX-License-Identifier: Apache-2.0
// Writing whole tensors: copy_, fill_, clone, to, and reading one element. What devices do of it is
// in device_copy.cpp. On the thread that holds the tensors.
#include "device_copy.h"
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

void require_no_repeats(const Shape& shape, const detail::Strides& strides) {
  EBB_REQUIRE(!repeats_elements(shape, strides), "Tensor::copy_",
              "this tensor repeats elements by expand(): clone() it first");
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
  constexpr const char* function = "Tensor::copy_";
  require_defined(function);
  other.require_defined(function);
  require_in_storage(function);
  other.require_in_storage(function);
  require_writable(function);
  EBB_REQUIRE(shape_ == other.shape_, function, "the shapes ", to_string(shape_), " and ",
              to_string(other.shape_), " differ");
  detail::require_convertible(other.dtype_, dtype_, function);
  if (elements() == 0) {
    return *this;
  }
  if (device() != cpu || other.device() != cpu) {
    copy_by_device(other);
    return *this;
  }
  if (dtype_ == other.dtype_ && is_plain(dtype_) && is_contiguous() && other.is_contiguous()) {
    std::memmove(raw(), other.raw(), bytes().count());
    return *this;
  }
  require_no_repeats(shape_, strides_);
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

// A device's copy of memory onto itself is undefined.
void Tensor::copy_by_device(const Tensor& other) const {
  constexpr const char* function = "Tensor::copy_";
  require_no_repeats(shape_, strides_);
  if (storage_.is_same(other.storage_)) {
    const Numbers mine = addresses_of(raw(), dtype_, shape_, strides_);
    const Numbers others = addresses_of(other.raw(), other.dtype_, shape_, other.strides_);
    if (raw() == other.raw() && is_contiguous() && other.is_contiguous()) {
      return;
    }
    EBB_REQUIRE(!overlap(mine, others), function,
                "views that overlap are not copied on a device: clone() one of them");
  }
  detail::copy_by_device(*this, other, function);
}

const Tensor& Tensor::fill_(double value) const {
  constexpr const char* function = "Tensor::fill_";
  require_defined(function);
  require_in_storage(function);
  require_writable(function);
  detail::require_convertible(DType::f64, dtype_, function);
  // Converted once, so that the loop only copies.
  std::byte element[sizeof(std::int64_t)]{};
  const auto* number = reinterpret_cast<const std::byte*>(&value);
  detail::strided_copy(Shape{}, {element, dtype_, {}}, {number, DType::f64, {}});
  if (device() == cpu) {
    detail::strided_copy(shape_, {raw(), dtype_, strides_}, {element, dtype_, {}});
  } else {
    detail::fill_by_device(*this, element, function);
  }
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
  require_defined("Tensor::clone");
  EBB_REQUIRE(owner, "Tensor::clone", "the owner is empty: pass a Runtime or an Iteration");
  const bool is_there = owner.stream().device == storage_.device();
  return to(is_there ? owner : owner.on(storage_.stream()), at);
}

Tensor Tensor::clone(Place at) const {
  require_defined("Tensor::clone");
  return clone(Owner::current("Tensor::clone"), at);
}

Tensor Tensor::to(Owner owner, Place at) const {
  require_defined("Tensor::to");
  require_in_storage("Tensor::to");
  EBB_REQUIRE(owner, "Tensor::to", "the owner is empty: pass a Runtime or an Iteration");
  detail::require_no_capture(storage_, owner.stream().device, "Tensor::to");
  Tensor copy = empty(owner, shape_, dtype_, at);
  copy.copy_(*this);
  return copy;
}

Tensor Tensor::to(Device device, Place at) const {
  require_defined("Tensor::to");
  if (device == storage_.device()) {
    return *this;
  }
  const Owner owner = Owner::current("Tensor::to");
  return to(owner.stream().device == device ? owner : owner.on(Stream{device}), at);
}

Tensor Tensor::to(Stream stream, Place at) const {
  require_defined("Tensor::to");
  return stream == storage_.stream() ? *this : to(Owner::current("Tensor::to").on(stream), at);
}

Tensor Tensor::to(DType dtype, Place at) const {
  require_host("Tensor::to");
  if (dtype == dtype_) {
    return *this;
  }
  detail::require_convertible(dtype_, dtype, "Tensor::to");
  const Owner owner = Owner::current("Tensor::to");
  const bool is_there = owner.stream().device == storage_.device();
  Tensor converted = empty(is_there ? owner : owner.on(storage_.stream()), shape_, dtype, at);
  converted.copy_(*this);
  return converted;
}

void Tensor::read_item(void* out, DType as) const {
  require_defined("Tensor::item");
  require_in_storage("Tensor::item");
  EBB_REQUIRE(elements() == 1, "Tensor::item", "the shape ", to_string(shape_), " has ",
              std::to_string(elements()), " elements, not one");
  detail::require_convertible(dtype_, as, "Tensor::item");
  detail::require_no_capture(storage_, cpu, "Tensor::item");
  if (device() != cpu) {
    return detail::host_copy(*this, "Tensor::item").read_item(out, as);
  }
  // As u8 a bool's byte is looked at: copied, a byte that is not 0 or 1 would be no C++ bool.
  const bool booleans = dtype_ == DType::boolean && as == DType::boolean;
  detail::strided_copy(Shape{}, {static_cast<std::byte*>(out), as, {}},
                       {raw(), booleans ? DType::u8 : dtype_, {}});
}

}  // namespace ebb::inline v0
