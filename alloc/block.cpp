// SPDX-License-Identifier: Apache-2.0
// Blocks as supervised pointers: the context is the block's record, which knows the way back.
#include <ebb/alloc/block.h>
#include <ebb/alloc/resource.h>

namespace ebb::inline v0 {

namespace {

void release_block(void* context, void* /*data*/) noexcept {
  auto* record = static_cast<BlockRecord*>(context);
  record->top->deallocate(record->block());
}

constexpr PtrOps block_ops{release_block, "block"};

}  // namespace

DataPtr own_block(Block block) noexcept {
  if (!block) {
    return {};
  }
  return {block.data, block.record, block_ops, block.stream.device};
}

BlockRecord* record_of(const DataPtr& ptr) noexcept {
  return ptr.context_as<BlockRecord>(block_ops);
}

}  // namespace ebb::inline v0
