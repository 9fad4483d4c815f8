// SPDX-License-Identifier: Apache-2.0
// What every adaptor does with a block on its way up and down the stack. Used by the adaptors.
// A block belongs to whoever holds it, so nothing here is shared. [alloc.adaptor]
#pragma once

#include <ebb/alloc/check.h>
#include <ebb/alloc/resource.h>

#include <string>
#include <utility>

namespace ebb::inline v0::detail {

// The upstream's block as the layer hands it out: given back to the layer from now on.
inline Block take_over(const Block& block, Resource& layer) noexcept {
  if (block) {
    block.record->top = &layer;
  }
  return block;
}

// Gives a block that the layer handed out to its upstream, as the upstream handed it out.
inline void hand_down(const Block& block, Resource& upstream) noexcept {
  block.record->top = &upstream;
  block.record->bytes = block.bytes;
  upstream.deallocate(block);
}

// Whether the layer is who the block must be given back to: false when it was freed before, or is
// another's.
inline bool is_from(const Block& block, const Resource& layer) noexcept {
  return block.record != nullptr && block.record->top == &layer;
}

// The upstream's explanation, told as the layer's: "limit(pool)".
inline OutOfMemoryInfo explain_through(const Resource& layer, const Resource& upstream,
                                       Bytes asked) {
  OutOfMemoryInfo info = upstream.explain(asked);
  info.asked = asked;
  info.resource = std::string(layer.name()) + "(" + info.resource + ")";
  return info;
}

}  // namespace ebb::inline v0::detail
