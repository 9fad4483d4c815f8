// SPDX-License-Identifier: Apache-2.0
// Frees by threads that do not own the heap, and the end of a heap's life. [alloc.heap]
#include "heap_impl.h"
#include "poison.h"
#include "pool_core.h"

#include <ebb/alloc/check.h>

namespace ebb::inline v0 {

using detail::HeapRecord;
using detail::RecordKind;

namespace {

// The marks of an orphan in place of a list. Never read.
HeapRecord* orphaned_records() noexcept {
  static constinit std::byte mark{};
  return reinterpret_cast<HeapRecord*>(&mark);
}
Cell* orphaned_cells() noexcept {
  return reinterpret_cast<Cell*>(orphaned_records());
}

}  // namespace

// After a push nothing of the heap may be touched: its owner may have ended it.
void Heap::Impl::give_foreign(HeapRecord& record) noexcept {
  if (record.kind() == RecordKind::direct) {
    free_direct(record);  // at once, so that a sanitizer sees later uses
  } else if (space.on_host()) {
    detail::poison(record.data, record.bytes.count());
  }
  HeapRecord* head = freed_.load(std::memory_order_relaxed);
  do {
    if (head == orphaned_records()) [[unlikely]] {
      return give_orphaned(&record);
    }
    record.next_freed() = head;
    // Release: pairs with the exchange in drain(), which acquires the record and the end of its
    // use. A record that comes back between does no harm: lists are only ever taken whole.
  } while (!freed_.compare_exchange_weak(head, &record, std::memory_order_release,
                                         std::memory_order_relaxed));
}

void Heap::Impl::give_foreign(Cell& cell) noexcept {
  Cell* head = freed_cells_.load(std::memory_order_relaxed);
  do {
    if (head == orphaned_cells()) [[unlikely]] {
      return give_orphaned(nullptr);
    }
    cell.next = head;
    // Pairs as for records.
  } while (!freed_cells_.compare_exchange_weak(head, &cell, std::memory_order_release,
                                               std::memory_order_relaxed));
}

// Nobody allocates from an orphan any more, so what is freed needs no place in its lists; but a
// large block's pages go back at once.
void Heap::Impl::give_orphaned(const HeapRecord* record) noexcept {
  if (record != nullptr && record->kind() == RecordKind::block) {
    space.discard(*record);
  }
  if (orphan_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    PoolCore::destroy(heap);
  }
}

std::uint64_t Heap::Impl::give_all(HeapRecord* records) noexcept {
  std::uint64_t count = 0;
  while (records != nullptr) {
    HeapRecord* const next = records->next_freed();
    give(*records);
    records = next;
    ++count;
  }
  counters.foreign_frees.add(count);
  return count;
}

void Heap::Impl::give_all(Cell* list) noexcept {
  while (list != nullptr) {
    Cell* const next = list->next;
    cells.give(list);
    list = next;
  }
}

void Heap::Impl::drain_cells() noexcept {
  if (freed_cells_.load(std::memory_order_relaxed) != nullptr) {
    give_all(freed_cells_.exchange(nullptr, std::memory_order_acquire));
  }
}

// Returns whether any block was taken back.
bool Heap::Impl::drain() noexcept {
  std::uint64_t blocks = 0;
  if (freed_.load(std::memory_order_relaxed) != nullptr) {
    blocks = give_all(freed_.exchange(nullptr, std::memory_order_acquire));
  }
  drain_cells();
  if (trim_wanted.load(std::memory_order_relaxed)) {
    trim();
  }
  return blocks != 0;
}

void Heap::Impl::retire() noexcept {
  drain();
  trim();
  EBB_ASSERT_VALID(*this);
  // From here on this thread's own frees are foreign ones too.
  state_.store(seized, std::memory_order_relaxed);
  give_all(freed_.exchange(orphaned_records(), std::memory_order_acq_rel));
  give_all(freed_cells_.exchange(orphaned_cells(), std::memory_order_acq_rel));
  const auto live = static_cast<std::int64_t>(counters.blocks_live() + cells.live());
  if (orphan_left_.fetch_add(live, std::memory_order_acq_rel) + live == 0) {
    PoolCore::destroy(heap);
  }
}

}  // namespace ebb::inline v0
