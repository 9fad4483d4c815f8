// SPDX-License-Identifier: Apache-2.0
// How an open iteration goes along its plan. Owner of the heap only. [alloc.replay]
//
// A plan is followed in a range that the heap has set aside for it: solid, so that nothing foreign
// can live there, and what the plan's own blocks have free is told by a table of slots. A slot may
// have its addresses when those that had them last before it, its predecessors, have been placed
// and have died: by induction, nobody lives there then.
//
//   A slot that is passed over counts as placed and dead if it could have been placed at that
//   moment, and else as blocked: in the table like a live one, until its own predecessors are gone.
//   A block that comes after a later slot was settled one way or the other is never placed in a
//   solid range: the later one may be in its way without being a predecessor, or, dead, hide it
//   from those that come.
//
// Where memory is needed that only the range still has, the range comes loose: what lives in it
// becomes ordinary blocks, the rest holes, and from then on the heap is asked whether a planned
// address is free.
#pragma once

#include "heap_impl.h"
#include "iteration_plan.h"
#include "plan_set.h"
#include "recording.h"

#include <ebb/alloc/replay.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ebb::inline v0 {

class Replay::Impl {
 public:
  Impl() noexcept;

  void begin(PlanSet::Impl& its_set, const Place& its_place) noexcept;
  bool end() noexcept;
  // Leaves the heap, which another thread may own from now on.
  void leave() noexcept;

  // The quick way: the next block is the one that the plan expects, and its place is free.
  bool is_expected(const Heap& asked, Bytes bytes, Align align, const Place& where) const noexcept {
    const detail::PlannedSlot& slot = *at_;
    return &asked == own_heap_ && slot.bytes == bytes.count() && slot.is_at(where) &&
           align.value() <= default_align_cpu.value() && slot.more == 0 &&
           table_.live[slot.predecessors[0]] == nullptr &&
           table_.live[slot.predecessors[1]] == nullptr && heap_->space.records().has(2);
  }
  [[gnu::always_inline]] BlockRecord* take_expected(Bytes bytes, Align align,
                                                    const Stream& stream) noexcept {
    const detail::PlannedSlot& slot = *at_++;
    return put(slot.number, base_ + slot.offset, slot.size, bytes, align, stream);
  }
  bool has_cell() const noexcept { return heap_->cells.has_free(); }
  Cell* take_cell() noexcept { return heap_->cells.take(); }
  Cell* take_cell_slowly(Heap& asked, Bytes bytes, Align align, const Stream& stream,
                         const Place& where) noexcept;
  BlockRecord* take_slowly(Heap& asked, Bytes bytes, Align align, Stream stream,
                           const Place& where) noexcept;
  bool attach_early(Heap& asked, Stream stream) noexcept;
  bool is_as_planned() const noexcept {
    return mode_ == Mode::solid && !deviated_ && displaced_ == 0;
  }
  void join() noexcept;
  // Of this one's record, on behalf of the heap.
  bool note_death(detail::HeapRecord& record, bool elsewhere) noexcept {
    return recording_.note_death(record, elsewhere);
  }
  Impl* outer() const noexcept { return outer_; }
  // Has the range come loose, if it is solid, for what the heap would have to refuse else.
  bool give_way() noexcept;

 private:
  enum class Mode : std::uint8_t {
    closed,     // between iterations
    waiting,    // open, and nothing was asked for yet
    apart,      // neither followed nor recorded
    unplanned,  // recorded
    solid,      // a plan is followed in a range of its own
    loose,      // a plan is followed as far as the heap has its addresses free
  };

  static constexpr std::size_t passed_most = 64;

  struct Request {
    SequenceEntry entry;
    Align align;
    Stream stream;
    std::size_t size;  // set aside

    bool is_range() const noexcept { return entry.kind == AllocationKind::iteration; }
  };

  void attach(Heap& asked, Stream stream) noexcept;
  bool is_recursive() const noexcept;
  void choose_plan() noexcept;
  bool make_table() noexcept;
  bool open_range() noexcept;
  void close_range() noexcept;

  // The range of an iteration within this one.
  detail::HeapRecord* open_inner(const Place& where, std::size_t bytes) noexcept;

  detail::HeapRecord* follow(const Request& request) noexcept;
  std::optional<std::uint32_t> match(const Request& request) noexcept;
  std::optional<std::uint32_t> match_passed(const Request& request) noexcept;
  std::optional<std::uint32_t> match_ahead(const Request& request) noexcept;
  std::optional<std::uint32_t> match_resized(const Request& request) noexcept;
  bool take_over(const Request& request) noexcept;
  bool has_offsets_of(const detail::IterationPlan& other) const noexcept;
  detail::HeapRecord* place(std::uint32_t slot, const Request& request) noexcept;
  detail::HeapRecord* displace(std::optional<std::uint32_t> slot, const Request& request) noexcept;
  detail::HeapRecord* take_hole(const Request& request) noexcept;
  detail::HeapRecord* take_anywhere(const Request& request) noexcept;
  [[gnu::always_inline]] detail::HeapRecord* put(std::uint32_t slot, std::byte* begin,
                                                 std::size_t size, Bytes bytes, Align align,
                                                 const Stream& stream) noexcept {
    Heap::Impl& heap = *heap_;
    detail::HeapRecord* const record = heap.fill_slot(table_, slot, begin, size);
    heap.hand_out(*record, begin, size, bytes, align, stream);
    return record;
  }
  void pass_over(std::uint32_t slot) noexcept;
  void settle(std::uint32_t slot) noexcept {
    settled_end_ = std::max(settled_end_, slot + std::size_t{1});
  }
  bool is_clear(std::uint32_t number, std::size_t depth = 0) noexcept;
  // depth is how many slots were asked on the way to this one.
  bool is_gone(std::uint32_t slot, std::size_t depth) noexcept;
  void block_the_dead() noexcept;
  void unblock_all() noexcept;
  void block(std::uint32_t slot) noexcept;
  static detail::HeapRecord* blocked() noexcept {
    static detail::HeapRecord mark;  // never read
    return &mark;
  }
  void deviate() noexcept;
  void record_so_far() noexcept;
  void come_loose() noexcept;
  void loosen() noexcept;
  std::vector<std::uint32_t> find_outliving() const noexcept;
  bool is_to_be_learned(std::vector<std::uint32_t>& outliving) noexcept;
  const detail::IterationPlan* find_plan_of(const AllocationSequence& recorded,
                                            const detail::IterationPlan* otherwise) const noexcept;
  bool note_outcome() noexcept;
  void catch_up() noexcept;
  void go_on_quickly() noexcept;

  // Whether the request is for another heap than the one that this goes along with, or for another
  // stream than the one that its plan is for.
  bool is_foreign(const Heap& asked, const Stream& stream) const noexcept {
    return heap_ == nullptr || &heap_->heap != &asked ||
           (heap_->space.order() != nullptr && stream != stream_);
  }
  std::uint32_t lane() const noexcept { return heap_->lane_of(stream_); }

  // What the quick way reads. own_heap_ is null where it is not open: it never is on a device,
  // where it would have to tell streams apart.
  const detail::PlannedSlot* at_;
  Heap* own_heap_ = nullptr;
  Heap::Impl* heap_ = nullptr;
  Stream stream_;  // of the first block: the plan is for what is made on it
  const detail::IterationPlan* plan_ = nullptr;  // of plans_
  std::byte* base_ = nullptr;
  detail::PlanTable table_;

  Mode mode_ = Mode::closed;
  bool deviated_ = false;
  bool has_blocked_ = false;
  bool is_tangled_ = false;  // the table takes too long to tell what is free
  // Of this iteration or the last: where another thread ends a guard, the loop may go before this.
  std::shared_ptr<PlanSet::Impl> set_;
  Place place_;  // where the iteration was opened
  Impl* outer_ = nullptr;
  std::size_t next_ = 0;    // the slot that is expected, where at_ does not tell
  std::size_t strict_ = 0;  // how many blocks came as planned before anything else did
  detail::HeapRecord* range_ = nullptr;
  // One more than the last slot that was placed, or counts as placed and dead.
  std::size_t settled_end_ = 0;
  std::uint32_t misses_ = 0;  // running
  std::size_t looks_ = 0;     // at slots, to find what keeps others from their places
  std::uint64_t displaced_ = 0;
  std::uint32_t since_move_ = 0;            // iterations
  std::uint32_t move_wait_ = 0;             // how many of them have to pass before the next
  std::vector<std::uint32_t> passed_;       // slots passed over that may still come, lowest first
  std::vector<detail::HeapRecord*> slots_;  // the table's
  std::vector<detail::HeapRecord*> living_;
  std::vector<std::uint32_t> outlived_before_;  // slots, when last any did
  std::shared_ptr<const detail::Plans> plans_;
  const detail::IterationPlan* last_ = nullptr;  // that an iteration ended on; of plans_
  detail::Recording recording_;
};

}  // namespace ebb::inline v0
