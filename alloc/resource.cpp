// SPDX-License-Identifier: Apache-2.0
// The throwing form of allocation, common to all resources.
#include <ebb/alloc/resource.h>

namespace ebb::inline v0 {

std::optional<Bytes> Resource::try_revoke(const Block& /*block*/) noexcept {
  return std::nullopt;
}

Block Resource::allocate(Bytes bytes, Align align, Stream stream) {
  const Block block = try_allocate(bytes, align, stream);
  if (!block) {
    throw OutOfMemory("Resource::allocate", explain(bytes));
  }
  return block;
}

}  // namespace ebb::inline v0
