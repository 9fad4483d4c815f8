// SPDX-License-Identifier: Apache-2.0
// The way of a request through slabs, holes and growth, and back. Owner only. [alloc.heap]
#include "heap_impl.h"

#include "poison.h"
#include "pool_core.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace ebb::inline v0 {

using detail::HeapRecord;
using detail::RecordKind;
using detail::slab_bytes;
using detail::slot_bytes_max;

namespace {

constexpr std::size_t reservation_max = std::size_t{64} << 30;

}  // namespace

Heap::Impl::Impl(Heap& self, PoolCore& core) noexcept
    : heap(self),
      pool(core),
      bypass(core.options.bypass && core.source.device().kind == DeviceKind::cpu),
      meta(*core.options.records, counters),
      space(core.source, meta, core.budget, counters,
            std::min(core.options.reservation.count(), reservation_max), core.options.order),
      slabs(meta),
      cells(meta, core.options.construct_cell, core.cell_epoch),
      mark_(core.mark) {}

Heap::Impl::~Impl() {
  EBB_ASSERT_VALID(*this);
}

[[gnu::always_inline]] inline HeapRecord* Heap::Impl::take(Bytes bytes, Align align,
                                                           Stream stream) noexcept {
  const std::size_t granule = space.granule();
  if (bytes.count() > HeapRecord::bytes_max || align.value() > align_max) [[unlikely]] {
    return nullptr;
  }
  const std::uint32_t lane = lane_of(stream);
  if (lane != 0 && more_slabs_[lane] == nullptr && open_lane(lane) == nullptr) [[unlikely]] {
    return nullptr;
  }
  const std::size_t size = space.size_for(bytes.count());
  const std::size_t aligned = std::max(align.value(), granule);
  HeapRecord* record;
  if (size <= slot_bytes_max && aligned == granule && !bypass) {
    record = take_slot(size, lane);
  } else {
    // Ranges are searched among all that is free, slots among what is at hand: the lists of
    // foreign frees are on a line that others write.
    if (has_news()) [[unlikely]] {
      drain();
    }
    record = bypass ? take_bypassing(bytes.count(), aligned) : take_range(size, aligned, lane);
  }
  if (record != nullptr) [[likely]] {
    hand_out(*record, record->begin(), size, bytes, align, stream);
  }
  return record;
}

[[gnu::always_inline]] inline HeapRecord* Heap::Impl::take_slot(std::size_t size,
                                                                std::uint32_t lane) noexcept {
  detail::SlabSet& set = slabs_of(lane);
  const std::uint32_t size_class = detail::SlabSet::class_of(size);
  if ((!set.has_room(size_class) && !make_room(size_class, lane)) || !space.records().ensure(1))
      [[unlikely]] {
    return nullptr;
  }
  HeapRecord* record = space.records().take();
  record->data = set.take(size_class, *record);
  return record;
}

// The shadow map has forgotten the block, and its death is noted if it has a mark.
[[gnu::always_inline]] inline void Heap::Impl::give_planned(HeapRecord& record) noexcept {
  counters.uncount_block(record.size);
  if (space.on_host()) {
    detail::poison(record.data, record.size);
  }
  empty_slot(record);
  check_now_and_then();
}

[[gnu::always_inline]] inline void Heap::Impl::give_now(HeapRecord& record) noexcept {
  if (space.order() != nullptr && (record.uses() != 0 || is_holding)) [[unlikely]] {
    return give_later(record);
  }
  give_at_once(record);
}

[[gnu::always_inline]] inline void Heap::Impl::give_at_once(HeapRecord& record) noexcept {
  if (record.is_marked()) [[unlikely]] {
    note_death(record);
  }
  if (!bypass) {
    shadow.remove(record.begin());
  }
  switch (record.kind()) {
    case RecordKind::planned:
      return give_planned(record);
    case RecordKind::slot: {
      const std::size_t size = space.size_for(record.bytes.count());
      counters.uncount_block(size);
      if (space.on_host()) {
        detail::poison(record.data, size);
      }
      const std::uint32_t lane = lane_of(record.stream);
      HeapRecord* range = slabs_of(lane).give(record);
      record.set_kind(RecordKind::spare);
      space.records().give(&record);
      if (range != nullptr) [[unlikely]] {
        space.give_now(*range, lane);
      }
      break;
    }
    case RecordKind::block:
      counters.uncount_block(record.size);
      if (space.on_host()) {
        detail::poison(record.data, record.size);
      }
      if (record.is_given_up()) [[unlikely]] {
        space.note_given_up(record);
      }
      space.give_now(record, lane_of(record.stream));
      break;
    case RecordKind::direct:
      counters.uncount_block(record.size);
      give_direct(record);
      break;
    case RecordKind::plan:  // a graph had it
      counters.uncount_block(record.size);
      space.give_now(record, lane_of(record.stream));
      break;
    default:
      EBB_ASSERT(record.kind() == RecordKind::block);  // freed twice, or never handed out
  }
  check_now_and_then();
}

void Heap::Impl::give(HeapRecord& record) noexcept {
  give_now(record);
}

// Waits for one of the streams that use the block after the other, unless its own comes after all
// of them now. Its death is noted when it is given.
void Heap::Impl::give_later(HeapRecord& record) noexcept {
  if (is_holding && record.kind() != RecordKind::planned) {
    record.next_freed() = std::exchange(held, &record);
    return;
  }
  record.awaited() = 0;
  if (has_come(record)) {
    return give_at_once(record);
  }
  record.next_freed() = std::exchange(awaiting, &record);
  counters.awaiting.add(space.size_for(record.bytes.count()));
}

bool Heap::Impl::make_room(std::uint32_t size_class, std::uint32_t lane) noexcept {
  detail::SlabSet& set = slabs_of(lane);
  drain();
  if (set.has_room(size_class)) {
    return true;
  }
  HeapRecord* range = set.ensure() ? take_range(slab_bytes, space.granule(), lane) : nullptr;
  if (range == nullptr) {
    return false;
  }
  // The search may have made room by draining; then the range is not needed.
  if (set.has_room(size_class)) {
    space.give_now(*range, lane);
  } else {
    set.add(*range, size_class);
  }
  return true;
}

HeapRecord* Heap::Impl::take_range(std::size_t size, std::size_t align,
                                   std::uint32_t lane) noexcept {
  HeapRecord* record = space.take(size, align, lane);
  return record != nullptr ? record : take_range_slowly(size, align, lane);
}

HeapRecord* Heap::Impl::take_bypassing(std::size_t bytes, std::size_t align) noexcept {
  HeapRecord* record = take_direct(bytes, align);
  return record != nullptr ? record : take_range_slowly(bytes, align, 0);
}

// Room in the budget comes back when the frees of others are taken back, here and in parked heaps.
HeapRecord* Heap::Impl::search_bypassing(std::size_t bytes, std::size_t align) noexcept {
  drain();
  HeapRecord* record = take_direct(bytes, align);
  if (record == nullptr && pool.budget.limit() != 0) {
    pool.trim_parked();
    record = take_direct(bytes, align);
  }
  return record;
}

// Growing comes last: first what other threads have freed, what streams are done with, then empty
// slabs, then growth.
HeapRecord* Heap::Impl::search_everywhere(std::size_t size, std::size_t align,
                                          std::uint32_t lane) noexcept {
  if (bypass) [[unlikely]] {
    return search_bypassing(size, align);
  }
  HeapRecord* record = nullptr;
  if (drain() && (record = space.take(size, align, lane)) != nullptr) {
    return record;
  }
  if (release_empty_slabs() && (record = space.take(size, align, lane)) != nullptr) {
    return record;
  }
  if (space.order() != nullptr && (record = take_united(size, align, lane)) != nullptr) {
    return record;
  }
  if (release_plan_range() && (record = space.take(size, align, lane)) != nullptr) {
    return record;
  }
  if (space.is_capturing()) {
    return nullptr;  // nothing is mapped or asked for meanwhile
  }
  record = space.take_growing(size, align, lane);
  return record != nullptr ? record : search_after_refusal(size, align, lane);
}

// Before a refusal idle pages here and in parked heaps are given back, which may make room in the
// budget; devices are waited for; and then what open iterations have set aside for their plans is
// used.
HeapRecord* Heap::Impl::search_after_refusal(std::size_t size, std::size_t align,
                                             std::uint32_t lane) noexcept {
  HeapRecord* record = nullptr;
  const bool room = space.trim() != 0;
  // Under a limit once more in any case: another thread may have trimmed for the two of us.
  if (pool.trim_parked() != 0 || room || pool.budget.limit() != 0) {
    record = space.take(size, align, lane);
    record = record != nullptr ? record : space.take_growing(size, align, lane);
  }
  if (record == nullptr && space.order() != nullptr) {
    record = take_synchronised(size, align, lane);
  }
  return record != nullptr || !loosen_plans() ? record : take_loosened(size, align, lane);
}

// What an open iteration's plan has free, and the heap with it.
HeapRecord* Heap::Impl::take_loosened(std::size_t size, std::size_t align,
                                      std::uint32_t lane) noexcept {
  HeapRecord* const record = space.take(size, align, lane);
  return record == nullptr && space.trim() != 0 ? space.take_growing(size, align, lane) : record;
}

// Polls instead of being woken: a free by another thread then costs nothing more for it.
HeapRecord* Heap::Impl::take_range_slowly(std::size_t size, std::size_t align,
                                          std::uint32_t lane) noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr auto step = std::chrono::microseconds(200);
  constexpr unsigned steps_per_request = 16;
  HeapRecord* record = search_everywhere(size, align, lane);
  const std::chrono::milliseconds wait = pool.options.limit_wait;
  if (record != nullptr || wait.count() == 0 || size > pool.budget.limit()) {
    return record;
  }
  const auto start = Clock::now();
  // In the wait's own unit, since the longest one there is overflows the clock's.
  const auto elapsed = [&] {
    return std::chrono::floor<std::chrono::milliseconds>(Clock::now() - start);
  };
  for (unsigned n = 0; record == nullptr && elapsed() < wait; ++n) {
    if (n % steps_per_request == 0) {
      pool.request_trims();  // again and again: what becomes idle later is wanted as well
    }
    std::this_thread::sleep_for(step);
    record = search_everywhere(size, align, lane);
  }
  return record;
}

HeapRecord* Heap::Impl::take_direct(std::size_t bytes, std::size_t align) noexcept {
  const std::size_t size = space.size_for(bytes);
  if (!space.records().ensure(1) || !pool.budget.take(size)) {
    return nullptr;
  }
  void* data = nullptr;
  // Not rounded up, so that a sanitizer sees the first byte beyond the block.
  if (::posix_memalign(&data, align, std::max<std::size_t>(bytes, 1)) != 0) {
    pool.budget.give(size);
    return nullptr;
  }
  HeapRecord* record = space.records().take();
  record->data = data;
  record->size = size;
  record->set_kind(RecordKind::direct);
  counters.count_reserved(size);
  return record;
}

void Heap::Impl::free_direct(HeapRecord& record) noexcept {
  std::free(std::exchange(record.data, nullptr));
}

void Heap::Impl::give_direct(HeapRecord& record) noexcept {
  free_direct(record);
  counters.reserved.sub(record.size);
  pool.budget.give(record.size);
  record.set_kind(RecordKind::spare);
  space.records().give(&record);
}

bool Heap::Impl::release_empty_slabs() noexcept {
  bool any = false;
  for (std::uint32_t lane = 0; lane < Stream::lanes; ++lane) {
    detail::SlabSet* const set = lane == 0 ? &slabs : more_slabs_[lane];
    while (HeapRecord* const range = set == nullptr ? nullptr : set->take_empty()) {
      space.give_now(*range, lane);
      any = true;
    }
    if (space.order() == nullptr) {
      break;  // there is no other
    }
  }
  return any;
}

std::size_t Heap::Impl::trim() noexcept {
  trim_wanted.store(false, std::memory_order_relaxed);
  release_empty_slabs();
  release_plan_range();
  return space.trim();
}

bool Heap::Impl::is_valid() const noexcept {
  return space.is_valid() && slabs.is_valid() &&
         std::all_of(more_slabs_.begin(), more_slabs_.end(),
                     [](const detail::SlabSet* set) { return set == nullptr || set->is_valid(); });
}

BlockRecord* Heap::take_block(Bytes bytes, Align align, Stream stream) noexcept {
  EBB_ASSERT(impl_->is_mine());
  return impl_->take(bytes, align, stream);
}

void Heap::give_block(BlockRecord& block) noexcept {
  if (impl_->in_child()) [[unlikely]] {
    return;
  }
  HeapRecord& record = Impl::returned(block);
  if (impl_->is_mine()) {
    impl_->give_now(record);
  } else {
    impl_->give_foreign(record);
  }
}

Cell* Heap::take_cell_with_block(Bytes bytes, Align align, Stream stream) noexcept {
  EBB_ASSERT(impl_->is_mine());
  Cell* const cell = impl_->take_cell();
  if (cell == nullptr) [[unlikely]] {
    return nullptr;
  }
  cell->block = impl_->take(bytes, align, stream);
  if (cell->block == nullptr) [[unlikely]] {
    impl_->cells.give(cell);
    return nullptr;
  }
  return cell;
}

void Heap::give_cell_with_block(Cell& cell) noexcept {
  Impl& impl = *impl_;
  EBB_ASSERT(impl.is_mine());
  auto& record = static_cast<HeapRecord&>(*std::exchange(cell.block, nullptr));
  impl.cells.give(&cell);
  if (!record.is_only_planned()) {
    return impl.give(Impl::returned(record));
  }
  impl.shadow.remove(record.begin());
  impl.give_planned(record);  // freed twice, it would be a spare one
}

void Heap::give_block_of(Cell& cell) noexcept {
  if (impl_->in_child()) [[unlikely]] {
    return;
  }
  if (!impl_->is_mine() && !impl_->bypass) [[unlikely]] {
    return impl_->give_foreign_block(cell);
  }
  impl_->give_now(Impl::returned(*std::exchange(cell.block, nullptr)));
}

}  // namespace ebb::inline v0
