// SPDX-License-Identifier: Apache-2.0
// Tensors handed out by DLPack: one struct with sizes, strides and a reference to the storage.
// The deleter may run on any thread, also after the runtime has ended.
#include "dlpack_code.h"

#include <ebb/alloc/check.h>
#include <ebb/runtime/interop/dlpack.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

namespace ebb::inline v0 {

namespace {

static_assert(sizeof(dlpack::Array) == 48 && sizeof(dlpack::Managed) == 64 &&
              sizeof(dlpack::ManagedVersioned) == 80 && offsetof(dlpack::Array, strides) == 32 &&
              offsetof(dlpack::ManagedVersioned, array) == 32);

template <class M>
struct Exported {
  M managed{};
  std::array<std::int64_t, max_dims> shape{};
  std::array<std::int64_t, max_dims> strides{};
  StorageHolder holder;  // the reference: what others use by address is not revoked

  static void destroy(M* self) { delete static_cast<Exported*>(self->context); }
};

dlpack::DataType type_of(DType dtype, const char* function) {
  EBB_REQUIRE(is_plain(dtype), function, "DLPack has no elements like ", to_string(dtype));
  return {detail::dlpack_code(dtype), static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

dlpack::Device device_of(const Tensor& tensor, const char* function) {
  const Device device = tensor.device();
  EBB_REQUIRE(device.kind != DeviceKind::sim, function, "DLPack has no device like ",
              to_string(device));
  return {device.kind == DeviceKind::cuda ? dlpack::device_cuda : dlpack::device_cpu,
          static_cast<std::int32_t>(device.index)};
}

// Returns the address of the first element, whatever the dtype.
void* first_element(const Tensor& tensor, const char* function) {
  EBB_REQUIRE(tensor.in_storage(), function,
              "the storage was resized or swapped, and no longer holds the view's elements");
  return static_cast<std::byte*>(tensor.storage().data()) +
         static_cast<std::size_t>(tensor.offset()) * size_of(tensor.dtype());
}

template <class M>
std::unique_ptr<Exported<M>> exported(const Tensor& tensor, const char* function) {
  EBB_REQUIRE(tensor.defined(), function, "the tensor is undefined");
  const dlpack::DataType type = type_of(tensor.dtype(), function);
  const dlpack::Device device = device_of(tensor, function);
  StorageHolder holder(tensor.storage(), "a DLPack consumer", function);
  void* const first = first_element(tensor, function);
  auto made = std::make_unique<Exported<M>>();
  for (int d = 0; d < tensor.dims(); ++d) {
    made->shape[static_cast<std::size_t>(d)] = tensor.size(d);
    made->strides[static_cast<std::size_t>(d)] = tensor.stride(d);
  }
  made->holder = std::move(holder);
  made->managed.array = {
      first, device, tensor.dims(), type, made->shape.data(), made->strides.data(), 0};
  made->managed.context = made.get();
  made->managed.deleter = Exported<M>::destroy;
  return made;
}

}  // namespace

dlpack::Managed* to_dlpack(const Tensor& tensor) {
  constexpr const char* function = "to_dlpack";
  EBB_REQUIRE(!tensor.defined() || !tensor.storage().read_only(), function,
              "the tensor is read-only, which this form of DLPack cannot say: use "
              "to_dlpack_versioned, or clone() it");
  return &exported<dlpack::Managed>(tensor, function).release()->managed;
}

dlpack::ManagedVersioned* to_dlpack_versioned(const Tensor& tensor) {
  auto made = exported<dlpack::ManagedVersioned>(tensor, "to_dlpack_versioned");
  made->managed.version = {1, 0};
  made->managed.flags = tensor.storage().read_only() ? dlpack::flag_read_only : 0;
  return &made.release()->managed;
}

}  // namespace ebb::inline v0
