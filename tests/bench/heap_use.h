// SPDX-License-Identifier: Apache-2.0
// A heap and how it is asked: of the CPU, or of a device on one of its streams. Used by what is
// measured on both. For the heap's owner.
#pragma once

#include <ebb/alloc/heap.h>
#include <ebb/alloc/replay.h>

#include <new>

namespace ebb::bench {

struct HeapUse {
  ebb::Heap& heap;
  ebb::Stream stream = {};

  ebb::Align align() const {
    return stream.device == ebb::cpu ? ebb::default_align_cpu : ebb::default_align_cuda;
  }
  ebb::Block allocate(ebb::Bytes bytes) const { return heap.allocate(bytes, align(), stream); }
  // By a replay; throws std::bad_alloc where that is refused.
  ebb::BlockRecord* take(ebb::Replay& replay, ebb::Bytes bytes) const {
    ebb::BlockRecord* const record = replay.take(heap, bytes, align(), stream, {});
    if (record == nullptr) {
      throw std::bad_alloc();
    }
    return record;
  }
};

}  // namespace ebb::bench
