// SPDX-License-Identifier: Apache-2.0
// The figures of one heap. Written by the heap's owner only, read by any thread.
#pragma once

#include <ebb/alloc/stats.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace ebb::inline v0::detail {

// One writer, so load and store instead of a read-modify-write; readers see some recent value.
class Counter {
 public:
  std::uint64_t add(std::uint64_t n) noexcept {
    const std::uint64_t sum = get() + n;
    set(sum);
    return sum;
  }
  void sub(std::uint64_t n) noexcept { set(get() - n); }
  void raise_to(std::uint64_t n) noexcept {
    if (n > get()) {
      set(n);
    }
  }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }

  std::atomic<std::uint64_t> value_{0};
};

struct HeapCounters {
  Counter live;
  Counter live_peak;
  Counter reserved;
  Counter reserved_peak;
  Counter awaiting;
  Counter allocations;
  Counter frees;
  Counter foreign_frees;
  Counter source_calls;
  // Of reserved, the pages that holders of live blocks have given up. Written by any thread, so it
  // counts with read-modify-writes, relaxed: a figure only.
  std::atomic<std::uint64_t> given_up{0};

  void count_block(std::uint64_t bytes) noexcept {
    live_peak.raise_to(live.add(bytes));
    allocations.add(1);
  }
  void uncount_block(std::uint64_t bytes) noexcept {
    live.sub(bytes);
    frees.add(1);
  }
  void count_reserved(std::uint64_t bytes) noexcept { reserved_peak.raise_to(reserved.add(bytes)); }

  std::uint64_t still_reserved() const noexcept {
    const std::uint64_t gone = given_up.load(std::memory_order_relaxed);
    const std::uint64_t all = reserved.get();
    return all - std::min(gone, all);
  }

  // By the owner, or once nobody owns the heap.
  std::uint64_t blocks_live() const noexcept { return allocations.get() - frees.get(); }

  MemoryStats snapshot() const noexcept {
    MemoryStats stats;
    // Frees first: read the other way round, blocks could come out as fewer than none.
    const std::uint64_t freed = frees.get();
    stats.live = Bytes{live.get()};
    stats.live_peak = Bytes{live_peak.get()};
    stats.reserved = Bytes{still_reserved()};
    stats.reserved_peak = Bytes{reserved_peak.get()};
    stats.awaiting = Bytes{awaiting.get()};
    stats.allocations = allocations.get();
    stats.blocks_live = stats.allocations - std::min(freed, stats.allocations);
    stats.foreign_frees = foreign_frees.get();
    stats.source_calls = source_calls.get();
    stats.heaps = 1;
    return stats;
  }
};

}  // namespace ebb::inline v0::detail
