// SPDX-License-Identifier: Apache-2.0
// What a pool's heaps share. Lives until the pool and its last heap are gone. Thread-safe.
#pragma once

#include "budget.h"

#include <ebb/alloc/pool.h>

#include <atomic>
#include <cstddef>
#include <mutex>

namespace ebb::inline v0 {

class PoolCore {
 public:
  PoolCore(Source& pages, PoolOptions pool_options);
  PoolCore(const PoolCore&) = delete;
  PoolCore& operator=(const PoolCore&) = delete;
  PoolCore(PoolCore&&) = delete;
  PoolCore& operator=(PoolCore&&) = delete;

  Heap& acquire();
  static void park(Heap& heap) noexcept;
  // Destroys parked heaps, and leaves the others to their owners and their last frees.
  void close() noexcept;
  static bool owns(const PoolCore* core, const Heap& heap) noexcept;

  MemoryStats stats() const noexcept;
  // The same, or fallback once the pool has closed: for a heap that lives on.
  MemoryStats stats_unless_closed(const MemoryStats& fallback) const noexcept;
  // Trims parked heaps and those of the calling thread; asks the owners of all others to.
  std::size_t trim() noexcept;
  // Asks the owners of other heaps to trim when they next come by.
  void request_trims() noexcept;
  // Trims parked heaps.
  std::size_t trim_parked() noexcept;
  void for_each_cell(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                     void* context) const;

  // Destroys a heap that nobody uses any more. Any thread.
  static void destroy(Heap& heap) noexcept;

  Source& source;
  const PoolOptions options;
  detail::Budget budget;
  // See Pool::cell_epoch. Relaxed: it only grows, and who needs the order brings it.
  std::atomic<std::uint64_t> cell_epoch{0};

 private:
  ~PoolCore() = default;

  Heap* own_parked() noexcept;
  bool any_seized() const noexcept;
  Heap* make_heap();
  void unref() noexcept;

  // Heaps are added at the front and live as long as the pool is open, so that readers need no
  // lock: the release of a new head pairs with their acquire.
  std::atomic<Heap*> heaps_{nullptr};
  std::atomic<std::size_t> refs_{1};  // the pool, and each heap
  // Guards closed_, and the adding of heaps; who holds it while the pool is open may use all heaps
  // that it can seize.
  mutable std::mutex mutex_;
  bool closed_ = false;
};

}  // namespace ebb::inline v0
