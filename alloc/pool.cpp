// SPDX-License-Identifier: Apache-2.0
// Pools: who owns which heap, and how long heaps live. One lock, taken when a heap is made, parked
// or trimmed, never by an allocation that succeeds.
#include "heap_impl.h"
#include "pool_core.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/pool.h>

#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace ebb::inline v0 {

PoolCore::PoolCore(Source& pages, PoolOptions pool_options)
    : source(pages), options(std::move(pool_options)), budget(options.limit.count()) {}

// The heap that this thread had last comes first: its pages are near the thread's core, since they
// were touched there first, and in its caches.
Heap* PoolCore::own_parked() noexcept {
  for (const bool was_mine : {true, false}) {
    for (Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
         heap = heap->impl_->next_heap) {
      if ((!was_mine || heap->impl_->was_mine()) && heap->impl_->try_own()) {
        return heap;
      }
    }
  }
  return nullptr;
}

bool PoolCore::any_seized() const noexcept {
  for (const Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
       heap = heap->impl_->next_heap) {
    if (heap->impl_->is_seized()) {
      return true;
    }
  }
  return false;
}

Heap& PoolCore::acquire() {
  if (Heap* const heap = own_parked()) {
    return *heap;
  }
  // A heap that is just being trimmed will be free soon: waiting for it is better than another
  // heap for good.
  constexpr auto patience = std::chrono::milliseconds(2);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (any_seized() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    if (Heap* const heap = own_parked()) {
      return *heap;
    }
  }
  Heap* const heap = make_heap();
  heap->impl_->try_own();
  const std::lock_guard lock(mutex_);
  heap->impl_->next_heap = heaps_.load(std::memory_order_relaxed);
  heaps_.store(heap, std::memory_order_release);
  return *heap;
}

Heap* PoolCore::make_heap() {
  std::unique_ptr<Heap> heap(new Heap(nullptr));
  heap->impl_ = std::make_unique<Heap::Impl>(*heap, *this);
  if (!heap->impl_->space.open()) {
    OutOfMemoryInfo info;
    info.asked = options.reservation;
    info.limit = options.limit;
    info.resource = options.name;
    throw OutOfMemory("Pool::acquire", std::move(info));
  }
  refs_.fetch_add(1, std::memory_order_relaxed);  // the pool's own reference is held
  return heap.release();
}

void PoolCore::park(Heap& heap) noexcept {
  EBB_ASSERT(heap.is_mine());
  Heap::Impl& impl = *heap.impl_;
  PoolCore& core = impl.pool;
  impl.drain();
  {
    // Under the lock, since close() ends whatever it finds parked.
    const std::lock_guard lock(core.mutex_);
    if (!core.closed_) {
      impl.park();
      return;
    }
  }
  impl.retire();
}

void PoolCore::close() noexcept {
  Heap* ending = nullptr;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    // What is owned ends when it is parked, which waits for this lock.
    for (Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
         heap = heap->impl_->next_heap) {
      if (heap->impl_->try_seize()) {
        heap->impl_->next_ending = std::exchange(ending, heap);
      }
    }
  }
  while (ending != nullptr) {
    std::exchange(ending, ending->impl_->next_ending)->impl_->retire();
  }
  unref();
}

bool PoolCore::owns(const PoolCore* core, const Heap& heap) noexcept {
  return &heap.impl_->pool == core;
}

MemoryStats PoolCore::stats() const noexcept {
  MemoryStats sum;
  for (const Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
       heap = heap->impl_->next_heap) {
    const MemoryStats one = heap->stats();
    sum.live += one.live;
    sum.live_peak += one.live_peak;
    sum.reserved += one.reserved;
    sum.reserved_peak += one.reserved_peak;
    sum.blocks_live += one.blocks_live;
    sum.allocations += one.allocations;
    sum.foreign_frees += one.foreign_frees;
    sum.source_calls += one.source_calls;
    sum.heaps += one.heaps;
  }
  return sum;
}

MemoryStats PoolCore::stats_unless_closed(const MemoryStats& fallback) const noexcept {
  const std::lock_guard lock(mutex_);
  return closed_ ? fallback : stats();
}

std::size_t PoolCore::trim() noexcept {
  std::size_t bytes = trim_parked();
  request_trims();
  for (Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
       heap = heap->impl_->next_heap) {
    if (heap->is_mine()) {
      bytes += heap->trim().count();
    }
  }
  return bytes;
}

void PoolCore::request_trims() noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    return;
  }
  for (Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
       heap = heap->impl_->next_heap) {
    if (!heap->is_mine()) {
      heap->impl_->trim_wanted.store(true, std::memory_order_relaxed);
    }
  }
}

std::size_t PoolCore::trim_parked() noexcept {
  // The lock keeps the pool from closing, and its heaps from ending, meanwhile.
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  if (closed_) {
    return bytes;
  }
  for (Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
       heap = heap->impl_->next_heap) {
    if (heap->impl_->try_seize()) {
      heap->impl_->drain();
      bytes += heap->impl_->trim();
      heap->impl_->park();
    }
  }
  return bytes;
}

void PoolCore::for_each_cell(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                             void* context) const {
  for (const Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
       heap = heap->impl_->next_heap) {
    heap->impl_->cells.for_each(since, visit, context);
  }
}

void PoolCore::destroy(Heap& heap) noexcept {
  PoolCore& core = heap.impl_->pool;
  delete &heap;
  core.unref();
}

void PoolCore::unref() noexcept {
  // Release and acquire: what the other holders did comes before the end of the core.
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  // Last of all: its destructor is the host's code, and may end what this function stands on.
  const std::shared_ptr<void> keep_alive = options.keep_alive;
  delete this;
}

namespace {

PoolOptions completed(PoolOptions options) {
  EBB_REQUIRE(options.reservation.count() != 0, "Pool::Pool",
              "the reservation of pool \"" + options.name + "\" is zero bytes");
  EBB_REQUIRE(options.limit_wait.count() >= 0, "Pool::Pool",
              "the wait for the limit of pool \"" + options.name + "\" is negative");
  if (options.records == nullptr) {
    options.records = &system_source();
  }
  return options;
}

}  // namespace

Pool::Pool(Source& source, PoolOptions options)
    : core_(new PoolCore(source, completed(std::move(options)))) {}

Pool::Pool(Pool&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}

Pool& Pool::operator=(Pool&& other) noexcept {
  if (this != &other) {
    if (core_ != nullptr) {
      core_->close();
    }
    core_ = std::exchange(other.core_, nullptr);
  }
  return *this;
}

Pool::~Pool() {
  if (core_ != nullptr) {
    core_->close();
  }
}

Heap& Pool::acquire() {
  return core_->acquire();
}
void Pool::park(Heap& heap) noexcept {
  PoolCore::park(heap);
}
bool Pool::owns(const Heap& heap) const noexcept {
  return PoolCore::owns(core_, heap);
}
MemoryStats Pool::stats() const noexcept {
  return core_->stats();
}
Bytes Pool::trim() noexcept {
  return Bytes{core_->trim()};
}
void Pool::for_each_cell(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                         void* context) const {
  core_->for_each_cell(since, visit, context);
}

std::uint64_t Pool::cell_epoch() const noexcept {
  return core_->cell_epoch.load(std::memory_order_relaxed);
}

void Pool::begin_cell_epoch() const noexcept {
  core_->cell_epoch.fetch_add(1, std::memory_order_relaxed);
}

const std::string& Pool::name() const noexcept {
  return core_->options.name;
}
Bytes Pool::limit() const noexcept {
  return core_->options.limit;
}

}  // namespace ebb::inline v0
