// SPDX-License-Identifier: Apache-2.0
// Replaying a trace: the same loop for ebb's heap and for malloc.
#include "replay.h"

#include "process_memory.h"
#include "trace_slots.h"

#include <ebb/alloc/pool.h>

#include <cstdlib>
#include <new>

#include <malloc.h>
#include <unistd.h>

namespace ebb::bench {
namespace {

class MallocSlots {
 public:
  explicit MallocSlots(std::size_t slots) : data_(slots, nullptr) {}
  void* take(std::size_t slot, std::size_t bytes) {
    data_[slot] = std::malloc(bytes);
    if (data_[slot] == nullptr) {
      throw std::bad_alloc();
    }
    return data_[slot];
  }
  void give(std::size_t slot) { std::free(data_[slot]); }
  void begin_iteration() {}
  void end() {}

 private:
  std::vector<void*> data_;
};

// between() runs after the first replay, with everything freed.
template <class Slots, class Between>
Figures replay(const Trace& trace, const Effort& effort, Slots& slots, Between between) {
  const Touch pages = effort.quick ? Touch::nothing : Touch::pages;
  const Touch bytes = effort.quick ? Touch::nothing : Touch::bytes;
  std::uint64_t sum = 0;  // so that the trace's own pages are resident from now on
  for (const Op& op : trace.ops()) {
    sum += op.slot;
  }
  keep_alive(sum);
  forget_resident_peak();
  const std::uint64_t before = resident_bytes();
  replay_once(trace, slots, pages);
  between();
  forget_resident_peak();
  const Iterations touched = replay_once(trace, slots, pages);
  const auto resident = static_cast<double>(resident_peak_bytes() - before);
  Figures figures;
  figures["resident_over_live"] = resident / static_cast<double>(trace.live_peak);
  figures["time_ms"] = median(touched.ms);
  figures["faults"] = static_cast<double>(touched.faults) / static_cast<double>(touched.ms.size());
  figures["filled_ms"] = median(replay_once(trace, slots, bytes).ms);
  figures["untouched_ms"] = median(replay_once(trace, slots, Touch::nothing).ms);
  return figures;
}

}  // namespace

Figures replay_malloc(const Trace& trace, const Effort& effort) {
  MallocSlots slots(trace.slots);
  return replay(trace, effort, slots, [] {});
}

Figures replay_heap(const Trace& trace, const Effort& effort) {
  ebb::Pool pool(ebb::system_source(), ebb::PoolOptions{.name = "replay"});
  ebb::Heap& heap = pool.acquire();
  HeapSlots slots({heap}, trace.slots);
  std::size_t first = 0;
  Figures figures =
      replay(trace, effort, slots, [&] { first = heap.stats().reserved_peak.count(); });
  const ebb::MemoryStats stats = heap.stats();
  ebb::Pool::park(heap);
  if (stats.live_peak.count() != trace.live_peak) {
    throw std::logic_error("[replay_heap] the heap's live peak is not the trace's");
  }
  const std::size_t reserved = stats.reserved_peak.count();
  figures["reserved_over_live"] = over_live(reserved, trace);
  figures["reserved_drift_bytes"] = static_cast<double>(reserved) - static_cast<double>(first);
  return figures;
}

Figures replay_planned(const Trace& trace, const Effort& effort) {
  ebb::Pool pool(ebb::system_source(), ebb::PoolOptions{.name = "replay"});
  ebb::Heap& heap = pool.acquire();
  Figures figures;
  {
    PlannedSlots slots({heap}, trace.slots);
    std::uint64_t displaced = 0;
    figures = replay(trace, effort, slots, [&] {
      slots.plans.work();
      ::malloc_trim(0);  // what planning took is none of an iteration's
      displaced = slots.plans.stats().displaced;
    });
    figures["displaced"] = static_cast<double>(slots.plans.stats().displaced - displaced);
  }
  figures["reserved_over_live"] = over_live(heap.stats().reserved.count(), trace);
  ebb::Pool::park(heap);
  return figures;
}

}  // namespace ebb::bench
