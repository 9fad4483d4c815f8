// SPDX-License-Identifier: Apache-2.0
// A heap whose blocks streams of a device use: lanes, blocks that several streams use, and what is
// done before a request is refused. Owner only. [alloc.cuda]
#include "heap_impl.h"
#include "pool_core.h"

#include <ebb/alloc/check.h>

#include <bit>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

namespace ebb::inline v0 {

using detail::HeapRecord;
using detail::RecordKind;

detail::SlabSet* Heap::Impl::open_lane(std::uint32_t lane) noexcept {
  if (lane == 0) {
    return &slabs;
  }
  detail::SlabSet*& set = more_slabs_[lane];
  if (set == nullptr && space.open_lane(lane)) {
    const Range memory = meta.add(sizeof(detail::SlabSet));
    set = memory ? new (memory.begin) detail::SlabSet(meta) : nullptr;
  }
  return set;
}

// Whether the block's own stream comes after all others that use it. The point of each is asked for
// when it is its turn: later than need be, which does no harm.
bool Heap::Impl::has_come(HeapRecord& record) noexcept {
  const std::uint32_t own = record.stream.lane();
  std::uint64_t left = record.uses() & ~(std::uint64_t{1} << own);
  while (left != 0) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    if (record.awaited() == 0) {
      record.awaited() = space.order()->next_point(lane);
    }
    if (!space.order()->is_after(own, lane, record.awaited())) {
      break;
    }
    record.awaited() = 0;
    left &= left - 1;
  }
  record.set_uses(left);
  return left == 0;
}

bool Heap::Impl::give_awaiting() noexcept {
  HeapRecord* next = std::exchange(awaiting, nullptr);
  bool any = false;
  while (next != nullptr) {
    HeapRecord& record = *next;
    next = record.next_freed();
    if (has_come(record)) {
      counters.awaiting.sub(space.size_for(record.bytes.count()));
      give(record);
      any = true;
    } else {
      record.next_freed() = std::exchange(awaiting, &record);
    }
  }
  return any;
}

// What is not done in time, or never, since the device is lost, counts as given: the pages stay.
void Heap::Impl::end_awaiting() noexcept {
  if (awaiting == nullptr) {
    return;
  }
  space.wait_until_quiet();
  give_awaiting();
  for (HeapRecord* next = std::exchange(awaiting, nullptr); next != nullptr;) {
    HeapRecord& record = *next;
    next = record.next_freed();
    record.set_uses(0);
    counters.awaiting.sub(space.size_for(record.bytes.count()));
    give(record);
  }
}

void Heap::Impl::join_planned() noexcept {
  DeviceContext& order = *space.order();
  try {
    for (HeapRecord* it = awaiting; it != nullptr; it = it->next_freed()) {
      const bool joins = it->kind() == RecordKind::planned;
      for (std::uint64_t left = joins ? it->uses() : 0; left != 0; left &= left - 1) {
        order.wait(it->stream, order.newest_of(static_cast<std::uint32_t>(std::countr_zero(left))));
      }
      it->set_uses(joins ? 0 : it->uses());
    }
  } catch (const std::exception&) {  // they go on waiting
  }
  give_awaiting();
}

// What other streams have been done with since.
HeapRecord* Heap::Impl::take_united(std::size_t size, std::size_t align,
                                    std::uint32_t lane) noexcept {
  space.order()->poll();
  const bool given = give_awaiting();
  return space.unite(lane) || given ? space.take(size, align, lane) : nullptr;
}

// After all that the device has been given to do. What is free then is searched again, and what
// lies idle in one place makes room in another. Twice: what several streams have used is its own
// stream's after the first time.
HeapRecord* Heap::Impl::take_synchronised(std::size_t size, std::size_t align,
                                          std::uint32_t lane) noexcept {
  HeapRecord* record = nullptr;
  for (int pass = 0; pass < 2 && record == nullptr; ++pass) {
    if (!space.wait_until_quiet()) {
      return nullptr;
    }
    drain();
    record = take_united(size, align, lane);
    if (record == nullptr) {
      space.trim();
      pool.trim_parked();
      record = space.take_growing(size, align, lane);
    }
  }
  return record;
}

bool Heap::begin_hold() noexcept {
  EBB_ASSERT(is_mine());
  if (impl_->is_holding) {
    return false;
  }
  impl_->drain();
  impl_->is_holding = true;
  return true;
}

HeldBlocks Heap::end_hold(Stream user) noexcept {
  EBB_ASSERT(is_mine() && impl_->is_holding);
  Impl& impl = *impl_;
  impl.drain();
  impl.is_holding = false;
  HeapRecord* first = std::exchange(impl.held, nullptr);
  for (HeapRecord* it = first; it != nullptr; it = it->next_freed()) {
    note_use(*it, user);
  }
  if (impl.plan_range.record != nullptr && !impl.plan_range.in_use) {
    HeapRecord& range = *std::exchange(impl.plan_range.record, nullptr);
    range.stream = impl.plan_range.stream;
    range.set_uses(0);
    impl.counters.count_block(range.size);
    impl.shadow.add(range.begin(), range.size);
    range.next_freed() = std::exchange(first, &range);
  }
  return {*this, first};
}

HeldBlocks& HeldBlocks::operator=(HeldBlocks&& other) noexcept {
  if (this != &other) {
    release();
    heap_ = std::exchange(other.heap_, nullptr);
    first_ = std::exchange(other.first_, nullptr);
  }
  return *this;
}

// The last one may end an orphaned heap, and the link of one that was given is the heap's.
void HeldBlocks::release() noexcept {
  auto* next = static_cast<HeapRecord*>(std::exchange(first_, nullptr));
  if (next == nullptr || heap_->in_child()) {
    return;
  }
  while (next != nullptr) {
    HeapRecord& record = *next;
    next = record.next_freed();
    if (heap_->is_mine()) {
      heap_->impl_->give(record);
    } else {
      heap_->impl_->give_foreign(record);
    }
  }
}

bool Heap::is_used_on(const BlockRecord& block, Stream stream) const noexcept {
  return impl_->space.order() == nullptr || stream.lane() == block.stream.lane() ||
         (static_cast<const HeapRecord&>(block).uses() >> stream.lane() & 1) != 0;
}

void Heap::note_use(BlockRecord& block, Stream stream) noexcept {
  if (impl_->space.order() != nullptr && stream.lane() != block.stream.lane()) {
    static_cast<HeapRecord&>(block).add_use(stream.lane());
  }
}

}  // namespace ebb::inline v0
