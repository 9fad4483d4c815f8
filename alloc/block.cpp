// SPDX-License-Identifier: Apache-2.0
// Blocks as supervised pointers: the context is the block's record, which knows the way back.
#include <ebb/alloc/block.h>
#include <ebb/alloc/resource.h>

namespace ebb::inline v0 {

namespace {

void release_block(void* context, void* data) noexcept {
  auto* record = static_cast<BlockRecord*>(context);
  record->top->deallocate(record->block(data));
}

}  // namespace

constinit const PtrOps detail::block_ops{release_block, "block"};

}  // namespace ebb::inline v0
