// SPDX-License-Identifier: Apache-2.0
// Tensors to and from DLPack, the exchange format of NumPy, PyTorch, JAX and others, without a copy
// of the elements. The structs here have DLPack's layout (versions 0.x and 1.x); those of any other
// declaration, <dlpack/dlpack.h> among them, are accepted as well. Any thread.
#pragma once

#include <ebb/runtime/tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0 {

namespace dlpack {

// Values of Device::type.
inline constexpr std::int32_t device_cpu = 1;
inline constexpr std::int32_t device_cuda = 2;
inline constexpr std::int32_t device_cuda_host = 3;  // pinned: read as host memory

// Values of DataType::code; bits tells the size.
inline constexpr std::uint8_t code_int = 0;
inline constexpr std::uint8_t code_uint = 1;
inline constexpr std::uint8_t code_float = 2;
inline constexpr std::uint8_t code_bfloat = 4;
inline constexpr std::uint8_t code_bool = 6;

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;  // 1, but for vectors
};

// Strides are in elements; null means contiguous. The first element is byte_offset after data.
struct Array {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

// What changes hands in version 0.x ("dltensor" in Python). Whoever has it calls deleter, which may
// be null, once.
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed* self);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

inline constexpr std::uint64_t flag_read_only = 1;
inline constexpr std::uint64_t flag_copied = 2;

// What changes hands since version 1.0 ("dltensor_versioned" in Python).
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  Array array;
};

// A foreign declaration of one of the two, told by its members; both have these since 2017.
template <class T>
concept ForeignManaged = sizeof(T) == sizeof(Managed) && requires(T t) {
  t.dl_tensor.byte_offset;
  t.manager_ctx;
  t.deleter(&t);
};
template <class T>
concept ForeignVersioned = sizeof(T) == sizeof(ManagedVersioned) && requires(T t) {
  t.dl_tensor.byte_offset;
  t.manager_ctx;
  t.flags;
  t.deleter(&t);
};

}  // namespace dlpack

// Returns the tensor's elements for another library; the storage lives until the deleter is
// called, on any thread, also after the runtime. One heap call. The address is what is handed over:
// resizing the storage meanwhile leaves the other library with memory that is gone. A read-only
// tensor cannot be told in the first form. Throws std::invalid_argument for strings, for devices
// that DLPack does not know, and for a read-only tensor in the first form.
dlpack::Managed* to_dlpack(const Tensor& tensor);
dlpack::ManagedVersioned* to_dlpack_versioned(const Tensor& tensor);

// Takes the elements of another library as a tensor that is charged to owner: strided as they are,
// read-only if they say so. The deleter is called once, with the last view, or when this throws.
// No heap call. Throws std::invalid_argument for null, more than eight dimensions, element types,
// lanes and devices that ebb does not know, elements that are not aligned, and a later major
// version.
Tensor from_dlpack(Owner owner, dlpack::Managed* managed, Place at = Place::here());
Tensor from_dlpack(Owner owner, dlpack::ManagedVersioned* managed, Place at = Place::here());

// The same with another declaration of the structs: to_dlpack<DLManagedTensor>(tensor).
template <dlpack::ForeignManaged M>
M* to_dlpack(const Tensor& tensor) {
  return reinterpret_cast<M*>(to_dlpack(tensor));
}
template <dlpack::ForeignVersioned M>
M* to_dlpack_versioned(const Tensor& tensor) {
  return reinterpret_cast<M*>(to_dlpack_versioned(tensor));
}
template <dlpack::ForeignManaged M>
Tensor from_dlpack(Owner owner, M* managed, Place at = Place::here()) {
  return from_dlpack(owner, reinterpret_cast<dlpack::Managed*>(managed), at);
}
template <dlpack::ForeignVersioned M>
Tensor from_dlpack(Owner owner, M* managed, Place at = Place::here()) {
  return from_dlpack(owner, reinterpret_cast<dlpack::ManagedVersioned*>(managed), at);
}

}  // namespace ebb::inline v0
