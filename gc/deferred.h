// SPDX-License-Identifier: Apache-2.0
// Storages whose last reference has gone and whose release is still to come. Private to gc.
// Thread-safe. [gc.defer]
#pragma once

#include "storage_cell.h"

#include <atomic>
#include <mutex>

namespace ebb::inline v0::detail {

// A queue through the cells. Each storage in it is still charged, and keeps its domain alive.
class DeferredReleases {
 public:
  DeferredReleases() = default;
  DeferredReleases(const DeferredReleases&) = delete;
  DeferredReleases& operator=(const DeferredReleases&) = delete;
  DeferredReleases(DeferredReleases&&) = delete;
  DeferredReleases& operator=(DeferredReleases&&) = delete;
  ~DeferredReleases() = default;

  // Enqueues, and wakes the close that waits for the storage. False once closed: release it now.
  bool push(StorageCell& cell) noexcept;
  // Releases on this thread what is charged to record or to no iteration, or everything when record
  // is null. Returns whether there was any. What others are just releasing may not be done when
  // this returns.
  bool run(const OwnerRecord* record) noexcept {
    return !is_empty_.load(std::memory_order_relaxed) && run_some(record);
  }
  // Returns how many were ever pushed: a close that is about to sleep looks whether more came.
  std::uint64_t pushed() const noexcept { return pushed_.load(std::memory_order_seq_cst); }
  // From now on nothing is deferred; releases what is here.
  void close() noexcept;

 private:
  bool run_some(const OwnerRecord* record) noexcept;
  // Unlinks what fits, and returns the first of it.
  Cell* take(const OwnerRecord* record) noexcept;

  std::mutex mutex_;  // guards the next three
  Cell* first_ = nullptr;
  Cell* last_ = nullptr;
  bool closed_ = false;
  // Sequentially consistent with OwnerRecord::closing, as the counts are.
  std::atomic<std::uint64_t> pushed_{0};
  std::atomic<bool> is_empty_{true};  // relaxed: a hint that saves the lock; written under it
};

// Releases the bytes, runs the finalizers and takes the storage off its owner; the last reference
// has gone.
void release_storage(StorageCell& cell) noexcept;
// The same for a list of cells that are linked by next.
void release_all(Cell* first) noexcept;

}  // namespace ebb::inline v0::detail
