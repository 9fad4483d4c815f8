// SPDX-License-Identifier: Apache-2.0
// What a pool's heaps share. Lives until the pool, its last heap and the last handle are gone; what
// keep_alive holds goes before, with the pool and the last heap. Thread-safe.
#pragma once

#include "budget.h"

#include <ebb/alloc/fork.h>
#include <ebb/alloc/pool.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace ebb::inline v0 {

class PoolCore {
 public:
  // Returns a core that is open: it holds itself until close() and the end of its last heap.
  static std::shared_ptr<PoolCore> make(Source& pages, PoolOptions pool_options);
  PoolCore(const PoolCore&) = delete;
  PoolCore& operator=(const PoolCore&) = delete;
  PoolCore(PoolCore&&) = delete;
  PoolCore& operator=(PoolCore&&) = delete;
  ~PoolCore() = default;

  // Throws std::invalid_argument once the pool has closed.
  Heap& acquire();
  static bool has_ended(const Heap& heap) noexcept;
  static void park(Heap& heap) noexcept;
  // Destroys parked heaps, and leaves the others to their owners and their last frees.
  void close() noexcept;
  static bool owns(const PoolCore* core, const Heap& heap) noexcept;

  // Returns the sum over the heaps, or fallback once the pool has closed.
  MemoryStats stats(const MemoryStats& fallback = {}) const noexcept;
  // Trims parked heaps and those of the calling thread; asks the owners of all others to.
  std::size_t trim() noexcept;
  // Asks the owners of other heaps to trim when they next come by.
  void request_trims() noexcept;
  // Trims parked heaps.
  std::size_t trim_parked() noexcept;
  // Visits nothing once the pool has closed. close() waits for a walk to end.
  void for_each_cell(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                     void* context) const;

  // Destroys a heap that nobody uses any more. Any thread.
  static void destroy(Heap& heap) noexcept;

  const detail::ForkMark mark;
  Source& source;
  const PoolOptions options;
  detail::Budget budget;
  // See Pool::cell_epoch. Relaxed: it only grows, and who needs the order brings it.
  std::atomic<std::uint64_t> cell_epoch{0};

 private:
  PoolCore(Source& pages, PoolOptions pool_options, std::shared_ptr<void> keep_alive);

  Heap* own_parked();
  bool any_seized() const noexcept;
  void ref_open();
  Heap* make_heap();
  [[noreturn]] void throw_closed() const;
  void unref() noexcept;

  // Heaps are added at the front and live as long as the pool is open, so that readers need no
  // lock: the release of a new head pairs with their acquire.
  std::atomic<Heap*> heaps_{nullptr};
  std::atomic<std::size_t> refs_{1};  // the pool, and each heap
  // Both until refs_ is zero; then touched by whoever made it so.
  std::shared_ptr<PoolCore> self_;
  std::shared_ptr<void> keep_alive_;
  // Guards the adding of heaps; who holds it while the pool is open may use all heaps that it can
  // seize. Taken before walk_mutex_.
  mutable std::mutex mutex_;
  // Shared by who walks the list of heaps, alone by close(), after which nobody walks any more.
  mutable std::shared_mutex walk_mutex_;
  bool closed_ = false;  // written with both locks held, read with either
};

}  // namespace ebb::inline v0
