// SPDX-License-Identifier: Apache-2.0
#include "device_replay.h"

#include "bench_device.h"
#include "trace_slots.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace ebb::bench {
namespace {

constexpr ebb::Bytes small_page{std::size_t{64} << 10};

// A loop that waits for the device in each iteration, and whose plans are made as they are found.
// Notes the most that is reserved from the iteration after the first one that could follow a plan.
class WatchedSlots : public PlannedSlots {
 public:
  WatchedSlots(BenchDevice& device, const HeapUse& use, std::size_t slots)
      : PlannedSlots(use, slots), device_(device) {}
  void* take(std::size_t slot, std::size_t bytes) {
    void* const data = PlannedSlots::take(slot, bytes);
    if (is_settled_) {
      reserved_peak_ = std::max(reserved_peak_, use_.heap.stats().reserved.count());
    }
    return data;
  }
  void begin_iteration() {
    end();
    device_.synchronise(device_.stream());
    is_settled_ = plans.stats().planned != 0;
    plans.work();
    PlannedSlots::begin_iteration();
  }
  std::uint64_t reserved_peak() const { return reserved_peak_; }

 private:
  BenchDevice& device_;
  bool is_settled_ = false;
  std::uint64_t reserved_peak_ = 0;
};

double planned_over_live(BenchDevice& device, const HeapUse& use, const Trace& trace) {
  WatchedSlots slots(device, use, trace.slots);
  replay_once(trace, slots, Touch::nothing);
  if (slots.reserved_peak() == 0) {
    throw std::logic_error("[replay_on_device] no iteration began with a plan");
  }
  return over_live(slots.reserved_peak(), trace);
}

double unplanned_over_live(BenchDevice& /*device*/, const HeapUse& use, const Trace& trace) {
  HeapSlots slots(use, trace.slots);
  replay_once(trace, slots, Touch::nothing);
  replay_once(trace, slots, Touch::nothing);
  const ebb::MemoryStats stats = use.heap.stats();
  if (stats.live_peak.count() != trace.live_peak) {
    throw std::logic_error("[replay_on_device] the heap's live peak is not the trace's");
  }
  return over_live(stats.reserved_peak.count(), trace);
}

template <class OverLive>
double in_fresh_heap(BenchDevice& device, const Trace& trace, OverLive measure) {
  ebb::Pool pool = device.make_pool();
  ebb::Heap& heap = pool.acquire();
  const double value = measure(device, HeapUse{heap, device.stream()}, trace);
  ebb::Pool::park(heap);
  return value;
}

void measure_both(BenchDevice& device, const Trace& trace, const std::string& suffix,
                  Figures& figures) {
  figures["reserved_over_live/planned" + suffix] = in_fresh_heap(device, trace, planned_over_live);
  figures["reserved_over_live/unplanned" + suffix] =
      in_fresh_heap(device, trace, unplanned_over_live);
}

}  // namespace

Figures replay_on_device(const std::string& name, const std::string& path, const Effort& effort) {
  const auto trace = read_trace(path, effort.quick ? 10 : UINT64_MAX, ebb::default_align_cuda);
  Figures figures{{"live_peak_bytes/" + name, static_cast<double>(trace->live_peak)}};
  BenchDevice device;
  measure_both(device, *trace, "/" + name, figures);
  if (device.machine() != nullptr) {
    BenchDevice small(small_page);
    measure_both(small, *trace, "_64k/" + name, figures);
  }
  return figures;
}

}  // namespace ebb::bench
