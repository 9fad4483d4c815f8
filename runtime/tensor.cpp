// SPDX-License-Identifier: Apache-2.0
// Tensors: the invariant that every element lies in the storage, and access to the elements.
// A tensor object is used by one thread at a time.
#include "checked_dim.h"
#include "extent.h"

#include <ebb/alloc/check.h>
#include <ebb/runtime/tensor.h>

#include <algorithm>
#include <utility>

namespace ebb::inline v0 {

namespace {

// Returns whether storage may hold elements of dtype at all: constructed strings, or plain bytes.
bool holds(const Storage& storage, DType dtype) noexcept {
  return is_plain(dtype) ? !storage.has_elements()
                         : storage.element_ops() == &element_ops<std::string>;
}

bool is_aligned(const Storage& storage, DType dtype) noexcept {
  return reinterpret_cast<std::uintptr_t>(storage.data()) % align_of(dtype) == 0;
}

std::int64_t room_in(const Storage& storage, DType dtype) noexcept {
  return static_cast<std::int64_t>(storage.bytes().count() / size_of(dtype));
}

void require_kind(const Storage& storage, DType dtype, const char* function) {
  EBB_REQUIRE(storage, function, "the storage is empty");
  EBB_REQUIRE(holds(storage, dtype), function, "a storage of ",
              storage.has_elements() ? "constructed elements" : "plain bytes",
              " holds no elements of dtype ", to_string(dtype));
  EBB_REQUIRE(is_aligned(storage, dtype), function, "the storage is not aligned for ",
              to_string(dtype));
}

}  // namespace

Tensor::Tensor(Storage storage, DType dtype, const Shape& shape, std::int64_t offset)
    : storage_(std::move(storage)), offset_(offset), shape_(shape), dtype_(dtype) {
  require_kind(storage_, dtype, "Tensor");
  const std::int64_t elements = shape.elements();
  const std::int64_t room = room_in(storage_, dtype);
  EBB_REQUIRE(offset >= 0 && offset <= room && elements <= room - offset, "Tensor",
              std::to_string(elements), " elements from ", std::to_string(offset),
              " on pass the end of a storage of ", std::to_string(room), " ", to_string(dtype));
  // In range: elements() has checked the product of the sizes that are not 0.
  strides_ = detail::contiguous_strides(shape);
}

Tensor Tensor::strided(Storage storage, DType dtype, const Shape& shape,
                       std::span<const std::int64_t> strides, std::int64_t offset) {
  constexpr const char* function = "Tensor::strided";
  require_kind(storage, dtype, function);
  EBB_REQUIRE(strides.size() == static_cast<std::size_t>(shape.dims()), function,
              std::to_string(strides.size()), " strides were given for ",
              std::to_string(shape.dims()), " dimensions");
  static_cast<void>(shape.elements());  // throws when the count overflows
  Tensor view;
  view.storage_ = std::move(storage);
  view.dtype_ = dtype;
  view.shape_ = shape;
  view.offset_ = offset;
  std::copy(strides.begin(), strides.end(), view.strides_.begin());
  EBB_REQUIRE(view.in_storage(), function, "elements lie outside a storage of ",
              std::to_string(room_in(view.storage_, dtype)), " ", to_string(dtype));
  return view;
}

bool Tensor::in_storage() const noexcept {
  if (!defined() || !holds(storage_, dtype_) || !is_aligned(storage_, dtype_)) {
    return false;
  }
  const std::int64_t room = room_in(storage_, dtype_);
  if (offset_ < 0 || offset_ > room) {
    return false;
  }
  if (std::any_of(shape_.begin(), shape_.end(), [](std::int64_t size) { return size == 0; })) {
    return true;
  }
  detail::Extent extent;
  return detail::find_extent(shape_, strides_, extent) && extent.low >= -offset_ &&
         extent.high < room - offset_;
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

void* Tensor::checked_data(DType wanted, bool writable, [[maybe_unused]] Place at) const {
  require_defined("Tensor::data");
  EBB_REQUIRE(wanted == dtype_, "Tensor::data", "the elements are ", to_string(dtype_), ", not ",
              to_string(wanted));
  if (writable) {
    require_writable("Tensor::data");
  }
  require_in_storage("Tensor::data");
#if EBB_CHECKS >= 2
  storage_.check_stream(at);
#endif
  return raw();
}

void Tensor::require_contiguous(const char* function) const {
  require_defined(function);
  EBB_REQUIRE(is_contiguous(), function, "the tensor is not contiguous: clone() it first");
}

void Tensor::require_host(const char* function) const {
  require_defined(function);
  EBB_REQUIRE(storage_.device() == cpu, function, "the tensor is on ", to_string(storage_.device()),
              ", where only its device can use it: use a copy in host memory, to(ebb::cpu)");
  require_in_storage(function);
}

void Tensor::require_dims(std::size_t wanted, const char* function) const {
  EBB_REQUIRE(static_cast<std::size_t>(dims()) == wanted, function, "the tensor has ",
              std::to_string(dims()), " dimensions, not ", std::to_string(wanted));
}

void Tensor::check_in_storage(const char* function) const {
  storage_.require_memory(function);
  EBB_REQUIRE(in_storage(), function,
              "the storage was resized or swapped after this view was made, and no longer holds "
              "its elements: make the view again");
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
