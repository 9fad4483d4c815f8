// SPDX-License-Identifier: Apache-2.0
// Replaying a trace: the same loop for all that blocks come from. Used by the replay parts of the
// alloc and cuda benchmarks. Single-threaded.
#pragma once

#include "heap_use.h"
#include "process_memory.h"
#include "trace.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <unistd.h>

namespace ebb::bench {

enum class Touch { nothing, pages, bytes };

inline void touch(void* data, std::size_t bytes, Touch how, std::size_t page) {
  if (how == Touch::bytes) {
    std::memset(data, 1, bytes);
  } else if (how == Touch::pages) {
    auto* const begin = static_cast<volatile char*>(data);
    for (std::size_t at = 0; at < bytes; at += page) {
      begin[at] = 1;
    }
  }
}

// The blocks of a trace that is replayed, by its slots.
class HeapSlots {
 public:
  HeapSlots(HeapUse use, std::size_t slots) : use_(use), records_(slots, nullptr) {}
  void* take(std::size_t slot, std::size_t bytes) {
    const ebb::Block block = use_.allocate(ebb::Bytes{bytes});
    records_[slot] = block.record;
    return block.data;
  }
  void give(std::size_t slot) { use_.heap.give_block(*records_[slot]); }
  void begin_iteration() {}
  void end() {}

 protected:
  HeapUse use_;
  std::vector<ebb::BlockRecord*> records_;
};

// The same, by a plan. Its iterations are those of the trace.
class PlannedSlots : public HeapSlots {
 public:
  PlannedSlots(HeapUse use, std::size_t slots)
      : HeapSlots(use, slots), plans({.granule = use.align()}) {}
  void* take(std::size_t slot, std::size_t bytes) {
    records_[slot] = use_.take(replay_, ebb::Bytes{bytes});
    return records_[slot]->data;
  }
  void begin_iteration() {
    replay_.end();
    replay_.begin(plans);
  }
  void end() { replay_.end(); }

  ebb::PlanSet plans;

 private:
  ebb::Replay replay_;
};

struct Iterations {
  std::vector<double> ms;    // of all but the first
  std::uint64_t faults = 0;  // in those
};

// Replays a trace in slots, and writes into the blocks where they are host memory.
template <class Slots>
Iterations replay_once(const Trace& trace, Slots& slots, Touch how) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  using Clock = std::chrono::steady_clock;
  Iterations result;
  result.ms.reserve(trace.iterations);
  std::uint64_t begun = 0;
  std::uint64_t faults = 0;
  Clock::time_point start;
  for (const Op& op : trace.ops()) {
    switch (op.kind) {
      case OpKind::allocate:
        touch(slots.take(op.slot, op.bytes), op.bytes, how, page);
        break;
      case OpKind::free:
        slots.give(op.slot);
        break;
      case OpKind::iteration: {
        const Clock::time_point now = Clock::now();
        if (++begun >= 3) {
          result.ms.push_back(std::chrono::duration<double, std::milli>(now - start).count());
          result.faults = minor_faults() - faults;
        } else {
          faults = minor_faults();
        }
        start = Clock::now();
        slots.begin_iteration();
        break;
      }
    }
  }
  slots.end();
  return result;
}

inline double over_live(std::uint64_t reserved, const Trace& trace) {
  return static_cast<double>(reserved) / static_cast<double>(trace.live_peak);
}

}  // namespace ebb::bench
