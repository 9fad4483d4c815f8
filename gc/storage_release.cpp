// SPDX-License-Identifier: Apache-2.0
// The end of a storage: its bytes, its finalizers, its charge and its struct. [gc.count]
// [gc.storage]
#include "deferred.h"
#include "domain_impl.h"
#include "slot.h"
#include "storage_cell.h"

#include <ebb/alloc/fork.h>
#include <ebb/gc/storage.h>

#include <utility>

namespace ebb::inline v0::detail {
namespace {

// Whether the storage belongs to the process that this one was forked from: it stays as it is.
inline bool is_parents(const StorageCell& cell) noexcept {
  return is_forked_child() && cell.home->in_child();
}

void run_finalizers(StorageCell& cell) noexcept {
  // The last strong reference is gone, so nobody registers any more.
  Finalizer* next = std::exchange(cell.finalizers, nullptr);
  while (next != nullptr) {
    Finalizer* const done = next;
    done->call(done->context);
    next = done->next;
    delete done;
  }
}

// Most storages own one block of the heap that their cell is from: that way is the shortest.
[[gnu::always_inline]] inline void release_bytes(StorageCell& cell) noexcept {
  if (cell.block != nullptr) [[likely]] {
    cell.home->give_block_of(cell);
  } else {
    cell.ptr.reset();
  }
}

// Of the last one, the cell is given back. Acquire and release: the end of all uses comes before.
[[gnu::always_inline]] inline void drop_weak(StorageHead* head) noexcept {
  constexpr std::uint64_t one = StorageHead::one_weak;
  const auto is_last = [](std::uint64_t counts) { return counts / one == 1; };
  if (is_last(head->counts.load(std::memory_order_acquire)) ||
      is_last(head->counts.fetch_sub(one, std::memory_order_acq_rel))) {
    StorageCell& cell = cell_of(head);
    cell.home->give_cell(&cell);
  }
}

// Whether the last reference only enqueues the cell.
[[gnu::always_inline]] inline bool defers(const StorageCell& cell) noexcept {
  return cell.has(storage_deferred) || slot().defer_releases;
}

// Takes a storage off whom it is charged to and gives it back, in one step: if it has a block of
// this thread's heap, is charged to an iteration that this thread opened, so that nobody else waits
// for its bytes, and nobody looks at it. Returns whether it did. A forked child has no heap of its
// parent's.
[[gnu::always_inline]] inline bool release_mine(StorageCell& cell) noexcept {
  const Slot& s = kept_slot();
  OwnerRecord* const record = cell.owner.record();
  if (cell.block == nullptr || cell.home != s.heap || s.defer_releases ||
      cell.has(storage_tracked | storage_deferred | storage_marked) ||
      record->opener.load(std::memory_order_relaxed) != s.thread ||
      cell.counts.load(std::memory_order_acquire) / StorageHead::one_weak != 1 ||
      !cell.owner.bury_unpinned(*record)) [[unlikely]] {
    return false;
  }
  record->subtract_own(signed_bytes(cell.bytes));
  s.heap->give_cell_with_block(cell);
  return true;
}

[[gnu::always_inline]] inline void release_now(StorageCell& cell) noexcept {
  release_bytes(cell);
  if (cell.finalizers != nullptr) [[unlikely]] {
    run_finalizers(cell);
  }
  bool pinned = false;
  OwnerRecord& record = cell.owner.bury(pinned);
  if (cell.adopted.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    cell.uncount_adopted(record.domain->impl());
  }
  record.subtract(signed_bytes(cell.bytes), this_thread_number());
  // The record's domain lives at least until the cell is given back, which is last.
  if (cell.has(storage_tracked)) [[unlikely]] {
    cell.counts.fetch_sub(StorageHead::one_weak, std::memory_order_acq_rel);
  }
  if (pinned) [[unlikely]] {
    cell.unpin();
  } else {
    drop_weak(&cell);
  }
}

[[gnu::noinline]] void release_slowly(StorageCell& cell) noexcept {
  if (is_parents(cell)) [[unlikely]] {
    return;
  }
  if (!defers(cell) || !cell.owner.record()->domain->impl().deferred.push(cell)) [[likely]] {
    release_now(cell);
  }
}

}  // namespace

void release_storage(StorageCell& cell) noexcept {
  release_now(cell);
}

void storage_last_strong(StorageHead* head) noexcept {
  StorageCell& cell = cell_of(head);
  if (!release_mine(cell)) [[unlikely]] {
    release_slowly(cell);
  }
}

void StorageCell::uncount_adopted(Domain::Impl& domain) noexcept {
  if (const std::int64_t counted = adopted.exchange(0, std::memory_order_acq_rel); counted != 0) {
    domain.adopted_live.fetch_sub(1, std::memory_order_relaxed);
    domain.adopted_bytes.fetch_sub(counted - 1, std::memory_order_relaxed);
  }
}

void StorageCell::change_adopted(Domain::Impl& domain, std::int64_t by) noexcept {
  std::int64_t counted = adopted.load(std::memory_order_relaxed);
  while (counted != 0) {
    if (adopted.compare_exchange_weak(counted, counted + by, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
      domain.adopted_bytes.fetch_add(by, std::memory_order_relaxed);
      return;
    }
  }
}

void storage_drop_weak(StorageHead* head) noexcept {
  if (is_parents(cell_of(head))) [[unlikely]] {
    return;
  }
  drop_weak(head);
}

}  // namespace ebb::inline v0::detail
