// SPDX-License-Identifier: Apache-2.0
// What a heap is made of, and how frees of other threads reach it. The owner may touch everything;
// others only what the section "any thread" lists.
#pragma once

#include "cells.h"
#include "heap_counters.h"
#include "meta_chunks.h"
#include "plan_range.h"
#include "poison.h"
#include "shadow_map.h"
#include "slab.h"
#include "space.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/fork.h>
#include <ebb/alloc/heap.h>
#include <ebb/alloc/replay.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ebb::inline v0 {

// The life of a heap. [alloc.heap]
//
//   owned     its thread may touch everything
//   parked    nobody may, until a thread owns or seizes it
//   seized    as owned, but by a thread that trims or ends it and allocates nothing
//   orphaned  its pool has closed: frees are only counted, and the last one destroys the heap
//
//   parked -> owned      try_own: compare and exchange, acquire
//   parked -> seized     try_seize: the same; so only one of several gets it
//   owned, seized -> parked   park: store, release; pairs with the two acquires, so the next one
//                        sees all that this one did with the lists
//   owned, seized -> orphaned   retire: exchange of the lists of foreign frees, acquire and
//                        release; a thread that frees finds the mark instead of a list
//
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
  detail::HeapRecord* take(Bytes bytes, Align align, Stream stream) noexcept;
  void give(detail::HeapRecord& record) noexcept;
  void give_now(detail::HeapRecord& record) noexcept;      // the same, inlined
  void give_at_once(detail::HeapRecord& record) noexcept;  // inlined, too
  void give_planned(detail::HeapRecord& record) noexcept;  // inlined, too
  // What its holder gives back.
  static detail::HeapRecord& returned(BlockRecord& block) noexcept {
    EBB_ASSERT(block.top != nullptr);  // else freed twice
    block.top = nullptr;
    return static_cast<detail::HeapRecord&>(block);
  }
  // All that only threads use is of one lane, whatever stream its holder has named.
  std::uint32_t lane_of(const Stream& stream) const noexcept {
    return space.order() == nullptr ? 0 : stream.lane();
  }
  Cell* take_cell() noexcept {
    if (!cells.has_free()) [[unlikely]] {
      drain();
    }
    return cells.take();
  }
  // Fills a range's record for its new holder; size is what is counted as live. Everything comes
  // from arguments: what was written to the record a moment ago would be slow to read back in
  // another width.
  void hand_out(detail::HeapRecord& record, std::byte* begin, std::size_t size, Bytes bytes,
                Align align, const Stream& stream) noexcept {
    record.bytes = bytes;
    record.align = align;
    record.stream = stream;
    record.top = &heap;
    if (space.order() != nullptr) [[unlikely]] {
      record.set_uses(0);
    }
    if (detail::poisons && space.on_host() && !bypass) {
      detail::unpoison(begin, bytes.count());
    }
    counters.count_block(size);
    // The system may hand out again what the owner does not know to be free yet.
    if (!bypass) {
      shadow.add(begin, size);
    }
    check_now_and_then();
  }
  bool drain() noexcept;
  // Whether a request finds more than before, if it first looks at what others are done with.
  bool has_news() const noexcept {
    return has_foreign_blocks() || trim_wanted.load(std::memory_order_relaxed) ||
           awaiting != nullptr;
  }
  bool has_foreign_blocks() const noexcept {  // relaxed: only a hint, drain() does the acquire
    return freed_.load(std::memory_order_relaxed) != nullptr ||
           freed_blocks_.load(std::memory_order_relaxed) != nullptr;
  }
  void drain_blocks() noexcept;
  std::size_t trim() noexcept;
  bool release_empty_slabs() noexcept;
  // Takes back the blocks that the streams which used them are done with. Returns whether it did.
  bool give_awaiting() noexcept;
  // The same for all, which it waits for: the heap takes no more requests, and would never look.
  void end_awaiting() noexcept;
  // Has the stream of a plan wait for those others that use its blocks, so that their places are
  // free now.
  void join_planned() noexcept;
  // A block out of what is free now; null where the heap would have to grow.
  detail::HeapRecord* take_in_holes(Bytes bytes, Align align, Stream stream) noexcept;
  // The block at begin, when that is free.
  detail::HeapRecord* take_at(std::byte* begin, Bytes bytes, Stream stream) noexcept;

  void note_death(detail::HeapRecord& record) noexcept;  // of a record with a mark
  // Sees to it that what a stream uses can be given back: before anything is taken for it. Null
  // when the system refuses memory, else the stream's slabs.
  detail::SlabSet* open_lane(std::uint32_t lane) noexcept;
  // What a plan's range begins and ends at a multiple of. Whole pages, so that what is made beside
  // it has its pages for itself, as it would without; but not those of devices, which are large.
  std::size_t plan_unit() const noexcept {
    return space.order() == nullptr ? space.page() : space.granule();
  }
  // A range for a plan, out of what is free or by growing.
  detail::HeapRecord* take_plan_range(std::size_t size, std::size_t align,
                                      std::uint32_t lane) noexcept;
  // Fills a slot of a plan's range, and empties it. In between a spare record is held for the hole
  // beside it, should the range come loose.
  detail::HeapRecord* fill_slot(detail::PlanTable& table, std::uint32_t slot, std::byte* begin,
                                std::size_t size) noexcept {
    space.records().hold();
    detail::HeapRecord* const record = space.records().take();
    record->data = begin;
    record->size = size;
    record->table = &table;
    record->set_kind(detail::RecordKind::planned, slot);
    table.add(*record, slot);
    return record;
  }
  void empty_slot(detail::HeapRecord& record) noexcept {
    record.table->remove(record);
    record.set_kind(detail::RecordKind::spare);
    space.records().give(&record);
    space.records().unhold();
  }
  detail::HeapRecord* take_plan_range_at(std::byte* begin, std::size_t size,
                                         std::uint32_t lane) noexcept;
  // Sets size bytes aside for what the outermost replay makes on stream: where the last one
  // followed its plans if that is free, else, if it may move, elsewhere, after which idle pages go
  // back. False: neither, or others wait for room.
  bool open_plan_range(std::size_t size, Stream stream, bool may_move) noexcept;
  // Another thread has asked for what lies idle.
  void make_room_for_others() noexcept;
  // The range stays set aside, but for whoever would have to grow the heap else, or has asked.
  void leave_plan_range() noexcept;
  bool release_plan_range() noexcept;
  // Has the ranges that open replays follow come loose. Returns whether any did.
  bool loosen_plans() noexcept;
  // Makes a plan's range holes again, and blocks of those that live in it, lowest first; needs that
  // many spare records.
  void dissolve(detail::HeapRecord& range, std::uint32_t lane,
                std::span<detail::HeapRecord* const> live) noexcept;
  // The innermost replay that goes along with this heap.
  Replay::Impl* replay = nullptr;
  // What dies now was freed by other threads.
  bool draining = false;
  detail::PlanRange plan_range;
  // Blocks that have been given back, and that other streams than their own still use. Linked by
  // next_freed.
  detail::HeapRecord* awaiting = nullptr;
  // Those that are held for a graph that is being captured, linked in the same way.
  bool is_holding = false;
  detail::HeapRecord* held = nullptr;
  [[no_unique_address]] detail::ShadowMap shadow;
  // Ends the heap's life, or leaves it to the last free. The caller no longer owns it after.
  void retire() noexcept;
  bool is_valid() const noexcept;

  // ---- any thread ----
  // Whether this process was forked from the one that made the heap, which may be in the middle of
  // using it, or share its pages: nothing is done then. [rt.fork]
  bool in_child() const noexcept { return detail::is_forked_child() && mark_.in_child(); }
  // Relaxed: a thread compares the word with itself only, and sees its own last write.
  bool is_mine() const noexcept { return state_.load(std::memory_order_relaxed) == this_thread(); }
  bool is_seized() const noexcept { return state_.load(std::memory_order_relaxed) == seized; }
  // Whether the calling thread was the last owner: its pages are near it. A hint, relaxed.
  bool was_mine() const noexcept {
    return last_owner_.load(std::memory_order_relaxed) == this_thread();
  }
  bool try_own() noexcept {
    if (!leave_parked(this_thread())) {
      return false;
    }
    last_owner_.store(this_thread(), std::memory_order_relaxed);
    return true;
  }
  bool try_seize() noexcept { return leave_parked(seized); }
  // By the owner, or by who has seized it.
  void park() noexcept { state_.store(parked, std::memory_order_release); }

  void give_foreign(detail::HeapRecord& record) noexcept;
  void give_foreign_block(Cell& cell) noexcept;
  void give_foreign(Cell& cell) noexcept;

  Heap& heap;
  PoolCore& pool;
  const bool bypass;
  alignas(64) detail::HeapCounters counters;
  detail::MetaChunks meta;
  detail::Space space;
  detail::SlabSet slabs;
  detail::CellStore cells;

  // From here to the lists: what other threads read and nobody writes often, on a line of its own.
  // Among the pool's heaps; never changes once published.
  alignas(64) Heap* next_heap = nullptr;
  // Among the heaps that a closing pool has seized.
  Heap* next_ending = nullptr;
  // Posted by memory pressure, seen by the owner when it drains. Relaxed: a hint.
  std::atomic<bool> trim_wanted{false};

 private:
  static constexpr std::size_t align_max = std::size_t{1} << 40;
  static constexpr std::uintptr_t parked = 0;
  static constexpr std::uintptr_t seized = 1;

  // A number that no other living thread has: neither parked nor seized.
  static std::uintptr_t this_thread() noexcept {
    return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  }

  bool leave_parked(std::uintptr_t to) noexcept {
    std::uintptr_t expected = parked;
    return state_.compare_exchange_strong(expected, to, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void move_plan_range(std::size_t size, std::uint32_t lane) noexcept;
  std::size_t give_back_idle() noexcept;
  bool hand_over_plan_range(Stream stream) noexcept;
  detail::SlabSet& slabs_of(std::uint32_t lane) noexcept {
    return lane == 0 ? slabs : *more_slabs_[lane];
  }
  // Of a block that cannot be used again yet: it is held, or other streams use it.
  void give_later(detail::HeapRecord& record) noexcept;
  bool has_come(detail::HeapRecord& record) noexcept;
  detail::HeapRecord* take_slot(std::size_t size, std::uint32_t lane) noexcept;
  bool make_room(std::uint32_t size_class, std::uint32_t lane) noexcept;
  detail::HeapRecord* take_range(std::size_t size, std::size_t align, std::uint32_t lane) noexcept;
  detail::HeapRecord* search_everywhere(std::size_t size, std::size_t align,
                                        std::uint32_t lane) noexcept;
  detail::HeapRecord* search_after_refusal(std::size_t size, std::size_t align,
                                           std::uint32_t lane) noexcept;
  detail::HeapRecord* take_united(std::size_t size, std::size_t align, std::uint32_t lane) noexcept;
  detail::HeapRecord* take_synchronised(std::size_t size, std::size_t align,
                                        std::uint32_t lane) noexcept;
  detail::HeapRecord* take_loosened(std::size_t size, std::size_t align,
                                    std::uint32_t lane) noexcept;
  detail::HeapRecord* take_range_slowly(std::size_t size, std::size_t align,
                                        std::uint32_t lane) noexcept;
  detail::HeapRecord* take_bypassing(std::size_t bytes, std::size_t align) noexcept;
  detail::HeapRecord* search_bypassing(std::size_t bytes, std::size_t align) noexcept;
  detail::HeapRecord* take_direct(std::size_t bytes, std::size_t align) noexcept;
  void give_direct(detail::HeapRecord& record) noexcept;
  void free_direct(detail::HeapRecord& record) noexcept;
  void give_orphaned(const detail::HeapRecord* record) noexcept;
  std::uint64_t give_all(detail::HeapRecord* records) noexcept;
  std::uint64_t give_all_blocks(Cell* list) noexcept;
  void give_all(Cell* list) noexcept;
  void check_now_and_then() noexcept {
#if EBB_CHECKS >= 2
    if (++operations_ % 256 == 0) {
      EBB_ASSERT_VALID(*this);
    }
#endif
  }

  // parked, seized, or the number of the owner's thread. See above.
  std::atomic<std::uintptr_t> state_{parked};
  std::atomic<std::uintptr_t> last_owner_{0};
  // Frees still to come to an orphan. Frees that come before retire() has added what it found alive
  // make it negative, so that only the last one brings it to zero. Acquire and release: whoever
  // does has seen what all others did.
  std::atomic<std::int64_t> orphan_left_{0};

  // What other threads have freed: pushed by them (release), taken whole by the owner (acquire); or
  // the mark of an orphan. On a line of their own, which the owner reads only when it runs short.
  alignas(64) std::atomic<detail::HeapRecord*> freed_{nullptr};
  std::atomic<Cell*> freed_blocks_{nullptr};  // cells whose block is free, linked by next_block
  std::atomic<Cell*> freed_cells_{nullptr};
  alignas(64) unsigned operations_ = 0;  // for checks=full
  std::array<detail::SlabSet*, Stream::lanes> more_slabs_{};
  const detail::ForkMark mark_;
};

}  // namespace ebb::inline v0
