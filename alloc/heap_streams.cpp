// SPDX-License-Identifier: Apache-2.0
// A heap whose blocks streams of a device use: lanes, blocks that several streams use, and what is
// done before a request is refused. Owner only. [alloc.cuda]
#include "heap_impl.h"
#include "pool_core.h"

#include <bit>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

namespace ebb::inline v0 {

using detail::HeapRecord;

detail::SlabSet* Heap::Impl::open_lane(std::uint32_t lane) noexcept {
  detail::SlabSet*& set = more_slabs_[lane];
  if (set == nullptr && space.open_lane(lane)) {
    const Range memory = meta.add(sizeof(detail::SlabSet));
    set = memory ? new (memory.begin) detail::SlabSet(meta) : nullptr;
  }
  return set;
}

// Waits for one of the streams that use the block after the other. Its death is noted at the end.
void Heap::Impl::await(HeapRecord& record) noexcept {
  record.awaited() = 0;
  record.next_freed() = std::exchange(awaiting, &record);
  if (has_come(record)) {
    awaiting = record.next_freed();
    give(record);
  }
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
      give(record);
      any = true;
    } else {
      record.next_freed() = std::exchange(awaiting, &record);
    }
  }
  return any;
}

void Heap::Impl::join_awaiting() noexcept {
  DeviceContext& order = *space.order();
  try {
    for (HeapRecord* it = awaiting; it != nullptr; it = it->next_freed()) {
      for (std::uint64_t left = it->uses(); left != 0; left &= left - 1) {
        order.wait(it->stream, order.newest_of(static_cast<std::uint32_t>(std::countr_zero(left))));
      }
      it->set_uses(0);
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
// lies idle in one place makes room in another.
HeapRecord* Heap::Impl::take_synchronised(std::size_t size, std::size_t align,
                                          std::uint32_t lane) noexcept {
  constexpr std::chrono::seconds patience{10};
  DeviceContext& order = *space.order();
  try {
    if (!order.wait_for_all(std::chrono::steady_clock::now() + patience)) {
      return nullptr;
    }
  } catch (const std::exception&) {  // the next call that may throw says so
    return nullptr;
  }
  drain();
  HeapRecord* record = take_united(size, align, lane);
  if (record == nullptr) {
    space.trim();
    pool.trim_parked();
    record = space.take_growing(size, align, lane);
  }
  return record;
}

void Heap::note_use(BlockRecord& block, Stream stream) noexcept {
  if (impl_->space.order() != nullptr && stream.lane() != block.stream.lane()) {
    static_cast<HeapRecord&>(block).add_use(stream.lane());
  }
}

}  // namespace ebb::inline v0
