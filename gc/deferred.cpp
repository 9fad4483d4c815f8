// SPDX-License-Identifier: Apache-2.0
// The queue of deferred releases, in the order in which the last references went. [gc.defer]
#include "deferred.h"

#include "slot.h"

#include <ebb/gc/defer.h>

#include <utility>

namespace ebb::inline v0 {
namespace detail {
namespace {

void append(Cell*& first, Cell*& last, Cell& cell) noexcept {
  cell.next = nullptr;
  (last == nullptr ? first : last->next) = &cell;
  last = &cell;
}

}  // namespace

void release_all(Cell* first) noexcept {
  for (Cell* next = first; next != nullptr;) {
    StorageCell& cell = cell_of(*next);
    next = cell.next;
    release_storage(cell);
  }
}

bool DeferredReleases::push(StorageCell& cell) noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    return false;
  }
  append(first_, last_, cell);
  is_empty_.store(false, std::memory_order_relaxed);
  pushed_.fetch_add(1, std::memory_order_seq_cst);
  // Under the lock: after it somebody may release the storage, and with it the record.
  cell.owner.record()->wake();
  return true;
}

Cell* DeferredReleases::take(const OwnerRecord* record) noexcept {
  const std::lock_guard lock(mutex_);
  Cell* taken = nullptr;
  Cell* taken_last = nullptr;
  Cell* next = std::exchange(first_, nullptr);
  last_ = nullptr;
  while (Cell* const cell = next) {
    next = cell->next;
    const OwnerRecord* const owner = cell_of(*cell).owner.record();
    if (record == nullptr || owner == record || owner->kind != OwnerKind::iteration) {
      append(taken, taken_last, *cell);
    } else {
      append(first_, last_, *cell);
    }
  }
  is_empty_.store(first_ == nullptr, std::memory_order_relaxed);
  return taken;
}

bool DeferredReleases::run_some(const OwnerRecord* record) noexcept {
  Cell* const taken = take(record);
  release_all(taken);
  return taken != nullptr;
}

void DeferredReleases::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  run(nullptr);
}

}  // namespace detail

DeferReleases::DeferReleases() noexcept
    : saved_(std::exchange(detail::slot().defer_releases, true)) {}

DeferReleases::~DeferReleases() {
  detail::slot().defer_releases = saved_;
}

}  // namespace ebb::inline v0
