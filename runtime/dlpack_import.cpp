// SPDX-License-Identifier: Apache-2.0
// Tensors over the elements of other libraries, by DLPack. The supervised pointer takes the struct
// at once, so that the deleter runs once whatever is wrong with it. Any thread.
#include "dlpack_code.h"
#include "extent.h"

#include <ebb/alloc/check.h>
#include <ebb/runtime/interop/dlpack.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace ebb::inline v0 {

namespace {

constexpr const char* function = "from_dlpack";

template <class M>
void release_managed(void* context, void* /*data*/) noexcept {
  auto* const managed = static_cast<M*>(context);
  if (managed->deleter != nullptr) {
    managed->deleter(managed);
  }
}

template <class M>
constexpr PtrOps managed_ops{release_managed<M>, "DLPack"};

DType dtype_from(const dlpack::DataType& type) {
  EBB_REQUIRE(type.lanes == 1, function, "elements of ", std::to_string(type.lanes),
              " lanes are not supported");
  for (int i = 0; i < static_cast<int>(DType::string); ++i) {  // the last one, and not DLPack's
    const auto dtype = static_cast<DType>(i);
    if (type.code == detail::dlpack_code(dtype) && type.bits == 8 * size_of(dtype)) {
      return dtype;
    }
  }
  detail::require_failed(function, "elements of type code ", std::to_string(type.code), " with ",
                         std::to_string(type.bits), " bits are not supported");
}

Device device_from(const dlpack::Device& device) {
  switch (device.type) {
    case dlpack::device_cpu:
    case dlpack::device_cuda_host:
      return cpu;
    case dlpack::device_cuda:
      EBB_REQUIRE(device.id >= 0, function, "the device number ", std::to_string(device.id),
                  " is negative");
      return {DeviceKind::cuda, static_cast<std::uint32_t>(device.id)};
    default:
      detail::require_failed(function, "devices of type ", std::to_string(device.type),
                             " are not supported");
  }
}

Shape shape_from(const dlpack::Array& array) {
  EBB_REQUIRE(array.ndim >= 0 && array.ndim <= max_dims, function, std::to_string(array.ndim),
              " dimensions: at most ", std::to_string(max_dims), " are supported");
  EBB_REQUIRE(array.ndim == 0 || array.shape != nullptr, function, "the shape is null");
  Shape shape(std::span<const std::int64_t>(array.shape, static_cast<std::size_t>(array.ndim)));
  static_cast<void>(shape.elements());  // throws when the count overflows
  return shape;
}

detail::Strides strides_from(const dlpack::Array& array, const Shape& shape) {
  if (array.strides == nullptr) {
    return detail::contiguous_strides(shape);
  }
  detail::Strides strides{};
  std::copy_n(array.strides, array.ndim, strides.begin());
  return strides;
}

// Where the elements lie: the storage begins at the lowest one.
struct Span {
  void* begin = nullptr;
  Bytes bytes;
  std::int64_t first = 0;  // of the view, in elements from begin
};

Span span_of(const dlpack::Array& array, DType dtype, const Shape& shape,
             const detail::Strides& strides) {
  const bool none = shape.elements() == 0;
  EBB_REQUIRE(array.data != nullptr || none, function, "data is null, and the shape ",
              to_string(shape), " has elements");
  if (none) {
    return {};
  }
  detail::Extent extent;
  constexpr std::int64_t distance_max = std::int64_t{1} << 48;  // no address space is larger
  EBB_REQUIRE(detail::find_extent(shape, strides, extent) && extent.low > -distance_max &&
                  extent.high < distance_max,
              function, "the strides of ", to_string(shape), " reach too far");
  // Numbers: what is told may be no place in memory at all.
  const auto unit = std::uintptr_t{size_of(dtype)};
  const auto below = static_cast<std::uintptr_t>(-extent.low) * unit;
  const auto above = static_cast<std::uintptr_t>(extent.high + 1) * unit;
  std::uintptr_t first = 0;
  EBB_REQUIRE(!__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(array.data),
                                      array.byte_offset, &first) &&
                  first >= below && first <= std::numeric_limits<std::uintptr_t>::max() - above,
              function, "the elements of ", to_string(shape), " lie outside the address space");
  EBB_REQUIRE(first % align_of(dtype) == 0, function, "the elements are not aligned for ",
              to_string(dtype));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): checked as a number
  return {reinterpret_cast<void*>(first - below), Bytes{below + above}, -extent.low};
}

template <class M>
Tensor import(Owner owner, M* managed, DataPtr holder, bool read_only, Place at) {
  EBB_REQUIRE(owner, function, "the owner is empty: pass a Runtime or an Iteration");
  const dlpack::Array& array = managed->array;
  const DType dtype = dtype_from(array.dtype);
  const Device device = device_from(array.device);
  const Shape shape = shape_from(array);
  const detail::Strides strides = strides_from(array, shape);
  const Span span = span_of(array, dtype, shape, strides);
  holder.release_context();
  Storage storage = Storage::wrap(owner, DataPtr(span.begin, managed, managed_ops<M>, device),
                                  span.bytes, Birth{at, birth_note(dtype, shape, device)});
  if (read_only) {
    storage.set_read_only();
  }
  return Tensor::strided(
      std::move(storage), dtype, shape,
      std::span<const std::int64_t>(strides.data(), static_cast<std::size_t>(shape.dims())),
      span.first);
}

}  // namespace

Tensor from_dlpack(Owner owner, dlpack::Managed* managed, Place at) {
  EBB_REQUIRE(managed != nullptr, function, "the tensor is null");
  return import(owner, managed, DataPtr(nullptr, managed, managed_ops<dlpack::Managed>, cpu), false,
                at);
}

Tensor from_dlpack(Owner owner, dlpack::ManagedVersioned* managed, Place at) {
  EBB_REQUIRE(managed != nullptr, function, "the tensor is null");
  DataPtr holder(nullptr, managed, managed_ops<dlpack::ManagedVersioned>, cpu);
  EBB_REQUIRE(managed->version.major == 1, function, "version ",
              std::to_string(managed->version.major), " of DLPack is not supported, only 1");
  return import(owner, managed, std::move(holder), (managed->flags & dlpack::flag_read_only) != 0,
                at);
}

}  // namespace ebb::inline v0
