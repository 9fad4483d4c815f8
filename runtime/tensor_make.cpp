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
  const Birth birth{at, birth_note(dtype, shape, device)};
  if (!is_plain(dtype)) [[unlikely]] {
    EBB_REQUIRE(device == cpu, function, "strings live in host memory, not on ", to_string(device),
                ": name an owner whose stream is Stream{}, such as it.owner().on(ebb::Stream{})");
    const auto count = static_cast<std::size_t>(shape.elements());
    return {Storage::make_elements(owner, element_ops<std::string>, count, birth), dtype, shape};
  }
  return {Storage::make(owner, bytes_of(shape, dtype), default_align(device), birth), dtype, shape};
}

Tensor make_zeros(const char* function, Owner owner, const Shape& shape, DType dtype, Place at) {
  Tensor tensor = make(function, owner, shape, dtype, at);
  if (!is_plain(dtype)) {
    return tensor;  // constructed empty
  }
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

}  // namespace ebb::inline v0
