// SPDX-License-Identifier: Apache-2.0
// Frees by threads that do not own the heap, and the end of a heap's life. [alloc.heap]
#include "heap_impl.h"
#include "poison.h"
#include "pool_core.h"

#include <ebb/alloc/check.h>

#include <utility>

namespace ebb::inline v0 {

using detail::HeapRecord;
using detail::RecordKind;

namespace {

// The mark of an orphan in place of a list. Never read.
template <class Node>
Node* orphaned() noexcept {
  static constinit std::byte mark{};
  return reinterpret_cast<Node*>(&mark);
}

// Returns false when list is an orphan's. After it returned true nothing of the heap may be
// touched: its owner may have ended it.
template <class Node>
bool push(std::atomic<Node*>& list, Node& node, Node*& link) noexcept {
  Node* head = list.load(std::memory_order_relaxed);
  do {
    if (head == orphaned<Node>()) [[unlikely]] {
      // Acquire: pairs with retire. What was planned was made a block, whose size its holder has
      // not seen, before.
      list.load(std::memory_order_acquire);
      return false;
    }
    link = head;
    // Release: pairs with take_all, which acquires the node and the end of its use. A node that
    // comes back between does no harm: lists are only ever taken whole.
  } while (!list.compare_exchange_weak(head, &node, std::memory_order_release,
                                       std::memory_order_relaxed));
  return true;
}

template <class Node>
Node* take_all(std::atomic<Node*>& list) noexcept {
  return list.load(std::memory_order_relaxed) != nullptr
             ? list.exchange(nullptr, std::memory_order_acquire)
             : nullptr;
}

}  // namespace

void Heap::Impl::give_foreign(HeapRecord& record) noexcept {
  if (record.kind() == RecordKind::direct) {
    free_direct(record);  // at once, so that a sanitizer sees later uses
  } else if (detail::poisons && space.on_host()) {
    detail::poison(record.data, record.bytes.count());
  }
  if (!push(freed_, record, record.next_freed())) [[unlikely]] {
    give_orphaned(&record);
  }
}

void Heap::Impl::give_foreign_block(Cell& cell) noexcept {
  if (detail::poisons && space.on_host()) {
    detail::poison(cell.block->data, cell.block->bytes.count());
  }
  if (!push(freed_blocks_, cell, cell.next_block)) [[unlikely]] {
    give_orphaned(static_cast<HeapRecord*>(cell.block));
  }
}

void Heap::Impl::give_foreign(Cell& cell) noexcept {
  if (!push(freed_cells_, cell, cell.next)) [[unlikely]] {
    give_orphaned(nullptr);
  }
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
  draining = true;
  while (records != nullptr) {
    HeapRecord* const next = records->next_freed();
    give(*records);
    records = next;
    ++count;
  }
  draining = false;
  counters.foreign_frees.add(count);
  return count;
}

std::uint64_t Heap::Impl::give_all_blocks(Cell* list) noexcept {
  std::uint64_t count = 0;
  draining = true;
  while (list != nullptr) {
    Cell* const next = list->next_block;
    give(returned(*std::exchange(list->block, nullptr)));
    list = next;
    ++count;
  }
  draining = false;
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

void Heap::Impl::drain_blocks() noexcept {
  give_all_blocks(take_all(freed_blocks_));
}

// Returns whether any block was taken back.
bool Heap::Impl::drain() noexcept {
  // Taken before the blocks and used after them: whoever pushed one of these cells has pushed its
  // block before, so none is used again while it is still on the list of blocks.
  Cell* const cells_free = take_all(freed_cells_);
  const std::uint64_t blocks =
      give_all(take_all(freed_)) + give_all_blocks(take_all(freed_blocks_));
  give_all(cells_free);
  const bool given = awaiting != nullptr && give_awaiting();
  if (trim_wanted.load(std::memory_order_relaxed) && !space.is_capturing()) {
    make_room_for_others();
  }
  return blocks != 0 || given;
}

void Heap::Impl::retire() noexcept {
  drain();
  end_awaiting();
  trim();
  EBB_ASSERT_VALID(*this);
  // From here on this thread's own frees are foreign ones too.
  state_.store(seized, std::memory_order_relaxed);
  Cell* const cells_free = freed_cells_.exchange(orphaned<Cell>(), std::memory_order_acq_rel);
  give_all(freed_.exchange(orphaned<HeapRecord>(), std::memory_order_acq_rel));
  give_all_blocks(freed_blocks_.exchange(orphaned<Cell>(), std::memory_order_acq_rel));
  give_all(cells_free);
  const auto live = static_cast<std::int64_t>(counters.blocks_live() + cells.count_live());
  if (orphan_left_.fetch_add(live, std::memory_order_acq_rel) + live == 0) {
    PoolCore::destroy(heap);
  }
}

}  // namespace ebb::inline v0
