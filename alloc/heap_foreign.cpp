// SPDX-License-Identifier: Apache-2.0
// Frees by threads that do not own the heap, and the end of a heap's life. [alloc.heap]
#include "heap_impl.h"
#include "poison.h"
#include "pool_core.h"

#include <ebb/alloc/check.h>

namespace ebb::inline v0 {

using detail::HeapRecord;
using detail::RecordKind;

void Heap::Impl::give_foreign(HeapRecord& record) noexcept {
  if (record.kind() == RecordKind::direct) {
    free_direct(record);  // at once, so that a sanitizer sees later uses
  } else if (space.on_host()) {
    detail::poison(record.data, record.bytes.count());
  }
  record.next_freed = freed_.load(std::memory_order_relaxed);
  // Release: the owner's exchange in drain() acquires the record and the end of its use.
  while (!freed_.compare_exchange_weak(record.next_freed, &record, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
  count_foreign_free();
}

void Heap::Impl::give_foreign(Cell& cell) noexcept {
  cell.next = freed_cells_.load(std::memory_order_relaxed);
  // Pairs as for records.
  while (!freed_cells_.compare_exchange_weak(cell.next, &cell, std::memory_order_release,
                                             std::memory_order_relaxed)) {
  }
  count_foreign_free();
}

void Heap::Impl::count_foreign_free() noexcept {
  // Release: what this thread did with the heap comes before its destruction. Acquire: whoever gets
  // the last one has seen what all others did. Nothing of the heap may be touched after this.
  if (balance_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    PoolCore::destroy(heap);
  }
}

// Returns whether anything was taken back.
bool Heap::Impl::drain() noexcept {
  std::uint64_t blocks = 0;
  // Acquire: pairs with the release of the pushes. Nodes are pushed by exchange of the head only,
  // and the whole list is taken at once, so an address that comes back (ABA) does no harm.
  HeapRecord* record = nullptr;
  if (freed_.load(std::memory_order_relaxed) != nullptr) {
    record = freed_.exchange(nullptr, std::memory_order_acquire);
  }
  while (record != nullptr) {
    HeapRecord* next = record->next_freed;
    give(*record);
    record = next;
    ++blocks;
  }
  std::uint64_t count = blocks;
  Cell* cell = nullptr;
  if (freed_cells_.load(std::memory_order_relaxed) != nullptr) {
    cell = freed_cells_.exchange(nullptr, std::memory_order_acquire);
  }
  while (cell != nullptr) {
    Cell* next = cell->next;
    cells.give(cell);
    cell = next;
    ++count;
  }
  drained_ += count;
  counters.foreign_frees.add(blocks);
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
  clear_owner();
  const auto live = static_cast<std::int64_t>(counters.blocks_live.get() + cells.live());
  // Before: bias - frees so far. After: frees drained + live - frees so far = frees to come, those
  // that are on their list but not yet counted included. Orders as in count_foreign_free.
  const std::int64_t change = static_cast<std::int64_t>(drained_) + live - bias;
  if (balance_.fetch_add(change, std::memory_order_acq_rel) + change == 0) {
    PoolCore::destroy(heap);
  }
}

}  // namespace ebb::inline v0
