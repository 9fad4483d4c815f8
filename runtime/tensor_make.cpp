// SPDX-License-Identifier: Apache-2.0
// The factories of tensors: each asks the owner for a storage once, and makes no other heap call.
// Any thread, within the rules of the owner's heap.
#include <ebb/alloc/check.h>
#include <ebb/runtime/tensor.h>

#include <cstring>
#include <utility>

namespace ebb::inline v0 {

namespace {

Bytes bytes_of(const Shape& shape, DType dtype) {
  return Bytes{size_of(dtype)} * static_cast<std::size_t>(shape.elements());
}

Tensor make(const char* function, Owner owner, const Shape& shape, DType dtype, Place at) {
  EBB_REQUIRE(owner, function, "the owner is empty: pass a Runtime or an Iteration");
  const Device device = owner.stream().device;
  const Align align = device.kind == DeviceKind::cpu ? default_align_cpu : default_align_cuda;
  return {Storage::make(owner, bytes_of(shape, dtype), align,
                        Birth{at, birth_note(dtype, shape, device)}),
          dtype, shape};
}

Tensor make_zeros(const char* function, Owner owner, const Shape& shape, DType dtype, Place at) {
  Tensor tensor = make(function, owner, shape, dtype, at);
  if (tensor.device() != cpu) {
    return tensor.fill_(0);
  }
  // Always written: the memory may be recycled.
  if (const Bytes bytes = tensor.storage().bytes(); bytes != Bytes{}) {
    std::memset(tensor.storage().data(), 0, bytes.count());
  }
  return tensor;
}

Tensor make_full(const char* function, Owner owner, const Shape& shape, double value, DType dtype,
                 Place at) {
  Tensor tensor = make(function, owner, shape, dtype, at);
  tensor.fill_(value);
  return tensor;
}

}  // namespace

Tensor empty(Owner owner, const Shape& shape, DType dtype, Place at) {
  return make("empty", owner, shape, dtype, at);
}

Tensor empty(const Shape& shape, DType dtype, Place at) {
  return make("empty", Owner::current("empty"), shape, dtype, at);
}

Tensor zeros(Owner owner, const Shape& shape, DType dtype, Place at) {
  return make_zeros("zeros", owner, shape, dtype, at);
}

Tensor zeros(const Shape& shape, DType dtype, Place at) {
  return make_zeros("zeros", Owner::current("zeros"), shape, dtype, at);
}

Tensor full(Owner owner, const Shape& shape, double value, DType dtype, Place at) {
  return make_full("full", owner, shape, value, dtype, at);
}

Tensor full(const Shape& shape, double value, DType dtype, Place at) {
  return make_full("full", Owner::current("full"), shape, value, dtype, at);
}

Tensor from_blob(Owner owner, DataPtr data, const Shape& shape, DType dtype, Place at) {
  EBB_REQUIRE(owner, "from_blob", "the owner is empty: pass a Runtime or an Iteration");
  const Bytes bytes = bytes_of(shape, dtype);
  EBB_REQUIRE(data || bytes == Bytes{}, "from_blob", "data is null, and the shape ",
              to_string(shape), " has elements");
  EBB_REQUIRE(reinterpret_cast<std::uintptr_t>(data.get()) % size_of(dtype) == 0, "from_blob",
              "data is not aligned for ", to_string(dtype));
  const Birth birth{at, birth_note(dtype, shape, data.device())};
  return {Storage::wrap(owner, std::move(data), bytes, birth), dtype, shape};
}

}  // namespace ebb::inline v0
