// SPDX-License-Identifier: Apache-2.0
// What one iteration allocated, in order, and when each block was freed: what is recorded, planned
// and followed. Values: any thread. [alloc.replay]
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/place.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ebb::inline v0 {

enum class AllocationKind : std::uint8_t {
  block,
  outliving,  // a block that was alive when its iteration ended: placed outside the plan
  iteration,  // the plan of an iteration within this one, as one block
};

struct SequenceEntry {
  Bytes bytes;  // as asked for
  Place place;
  // How many allocations of the iteration had been made when this one was freed: more than its own
  // number, at most their count.
  std::uint32_t dies = 0;
  AllocationKind kind = AllocationKind::block;
  std::uint8_t align_log2 = 0;

  // Returns whether the two are the same allocation of a repeating iteration, whenever freed.
  bool repeats(const SequenceEntry& other) const noexcept {
    return bytes == other.bytes && align_log2 == other.align_log2 &&
           (kind == AllocationKind::iteration) == (other.kind == AllocationKind::iteration) &&
           place.is_same_as(other.place);
  }
  // From now on this allocation, which the other repeats, lives as long as the longer-lived of
  // both.
  void outlast(const SequenceEntry& other) noexcept {
    dies = std::max(dies, other.dies);
    if (other.kind == AllocationKind::outliving) {
      kind = AllocationKind::outliving;
    }
  }
};

using AllocationSequence = std::vector<SequenceEntry>;

}  // namespace ebb::inline v0
