// SPDX-License-Identifier: Apache-2.0
// Moving tensors out of their iteration. [gc.keep]
#include "keep.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/runtime/runtime.h>

namespace ebb::inline v0 {
namespace detail {

Tensor keep_in(const Tensor& tensor, Owner owner, Place at) {
  if (!tensor.defined()) {
    throw std::invalid_argument("[keep] the tensor is undefined");
  }
  owner.domain()->require_usable("keep");
  tensor.storage().require_memory("keep");
  // A loader's slot is never given away: it would be missing from its ring.
  if (tensor.storage().owner_kind() == OwnerKind::loader) {
    return tensor.clone(owner, at);
  }
  Storage storage = tensor.storage();
  EBB_REQUIRE(
      tensor.device() == cpu || !storage.domain().device(tensor.device(), "keep").is_capturing(),
      "keep", "while a graph is captured, nothing of it can be kept: it has the memory");
  storage.transfer(owner);
  return tensor;
}

}  // namespace detail

Tensor keep(const Tensor& tensor, Runtime& rt, Place at) {
  return detail::keep_in(tensor, rt.domain()->long_lived(), at);
}

Tensor keep(const Tensor& tensor, Place at) {
  return detail::keep_in(tensor, Owner::current("keep").domain()->long_lived(), at);
}

Tensor keep_copy(const Tensor& tensor, Runtime& rt, Place at) {
  return tensor.clone(rt.domain()->long_lived(), at);
}

}  // namespace ebb::inline v0
