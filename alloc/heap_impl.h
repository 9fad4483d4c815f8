// SPDX-License-Identifier: Apache-2.0
// What a heap is made of, and how frees of other threads reach it. The owner may touch everything;
// others only what the section "any thread" lists.
#pragma once

#include "cells.h"
#include "heap_counters.h"
#include "meta_chunks.h"
#include "slab.h"
#include "space.h"

#include <ebb/alloc/heap.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0 {

// The life of a heap. balance counts down by one with every free (of a block or a cell) by a thread
// that is not the owner, starting from a bias that no program reaches. When the pool has closed and
// nobody owns the heap, retire() replaces the bias by the number of frees to come; whoever brings
// balance to zero knows that no other thread will touch the heap again, and destroys it.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what others write has its own lines
class Heap::Impl {
 public:
  Impl(Heap& self, PoolCore& core) noexcept;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl();

  // ---- owner only ----
  Block take(Bytes bytes, Align align, Stream stream) noexcept;
  void give(detail::HeapRecord& record) noexcept;
  // Fills a range's record for its new holder.
  Block hand_out(detail::HeapRecord& record, std::byte* begin, Bytes bytes, Align align,
                 Stream stream) noexcept;
  bool drain() noexcept;
  std::size_t trim() noexcept;
  bool release_spare_slabs() noexcept;
  // Ends the heap's life, or leaves it to the last free. The caller no longer owns it after.
  void retire() noexcept;
  bool is_valid() const noexcept;

  // ---- any thread ----
  bool is_mine() const noexcept { return owner.load(std::memory_order_relaxed) == this_thread(); }
  void set_owner_to_me() noexcept { owner.store(this_thread(), std::memory_order_relaxed); }
  void clear_owner() noexcept { owner.store(0, std::memory_order_relaxed); }
  void give_foreign(detail::HeapRecord& record) noexcept;
  void give_foreign(Cell& cell) noexcept;

  Heap& heap;
  PoolCore& pool;
  const bool bypass;
  detail::HeapCounters counters;
  detail::MetaChunks meta;
  detail::Space space;
  detail::SlabSet slabs;
  detail::CellStore cells;

  // Guarded by the pool's lock, but for next_heap, which never changes once published.
  Heap* next_parked = nullptr;
  Heap* next_heap = nullptr;

  // The owner's thread, 0 while parked. Relaxed is enough: a thread compares it with itself only,
  // and it always sees its own last write. Who may touch what is handed over by the pool's lock.
  std::atomic<std::uintptr_t> owner{0};
  std::atomic<bool> trim_wanted{false};

 private:
  static constexpr std::int64_t bias = std::int64_t{1} << 62;

  // A number that no other living thread has, and never 0.
  static std::uintptr_t this_thread() noexcept {
    return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  }

  bool make_room(std::uint32_t size_class) noexcept;
  detail::HeapRecord* take_range(std::size_t size, std::size_t align) noexcept;
  detail::HeapRecord* take_range_slowly(std::size_t size, std::size_t align) noexcept;
  detail::HeapRecord* take_direct(std::size_t bytes, std::size_t align) noexcept;
  void give_direct(detail::HeapRecord& record) noexcept;
  void free_direct(detail::HeapRecord& record) noexcept;
  void count_foreign_free() noexcept;
  void check_now_and_then() noexcept;

  std::uint64_t drained_ = 0;
  unsigned operations_ = 0;  // for checks=full

  // Written by other threads: on lines of their own.
  alignas(64) std::atomic<detail::HeapRecord*> freed_{nullptr};
  std::atomic<Cell*> freed_cells_{nullptr};
  std::atomic<std::int64_t> balance_{bias};
};

}  // namespace ebb::inline v0
