// SPDX-License-Identifier: Apache-2.0
// Pools: who owns which heap, and how long heaps live. One lock, taken when a heap is made, parked
// or trimmed, never by an allocation that succeeds.
#include "heap_impl.h"
#include "pool_core.h"
#include "replay_impl.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/pool.h>

#include <chrono>
#include <new>
#include <shared_mutex>
#include <thread>
#include <utility>

namespace ebb::inline v0 {

PoolCore::PoolCore(Source& pages, PoolOptions pool_options, std::shared_ptr<void> keep_alive)
    : source(pages),
      options(std::move(pool_options)),
      budget(options.limit.count()),
      keep_alive_(std::move(keep_alive)) {}

std::shared_ptr<PoolCore> PoolCore::make(Source& pages, PoolOptions pool_options) {
  std::shared_ptr<void> keep_alive = std::move(pool_options.keep_alive);
  std::shared_ptr<PoolCore> core(
      new PoolCore(pages, std::move(pool_options), std::move(keep_alive)));
  core->self_ = core;
  return core;
}

void PoolCore::throw_closed() const {
  detail::require_failed("Pool::acquire", "the pool \"", options.name,
                         "\" has closed: its runtime or loader has been destroyed");
}

// The heap that this thread had last comes first: its pages are near the thread's core, since they
// were touched there first, and in its caches.
Heap* PoolCore::own_parked() {
  const std::shared_lock lock(walk_mutex_);
  if (closed_) {
    throw_closed();
  }
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
  const std::shared_lock lock(walk_mutex_);
  if (closed_) {
    return false;
  }
  for (const Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
       heap = heap->impl_->next_heap) {
    if (heap->impl_->is_seized()) {
      return true;
    }
  }
  return false;
}

Heap& PoolCore::acquire() {
  mark.require_own_process("Pool::acquire");
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
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      heap->impl_->next_heap = heaps_.load(std::memory_order_relaxed);
      heaps_.store(heap, std::memory_order_release);
      return *heap;
    }
  }
  destroy(*heap);
  throw_closed();
}

void PoolCore::ref_open() {
  const std::shared_lock lock(walk_mutex_);
  if (closed_) {
    throw_closed();
  }
  refs_.fetch_add(1, std::memory_order_relaxed);  // the pool's own reference is held
}

Heap* PoolCore::make_heap() {
  const auto drop = [](PoolCore* core) { core->unref(); };
  ref_open();
  std::unique_ptr<PoolCore, decltype(drop)> ref(this, drop);  // the heap's
  std::unique_ptr<Heap> heap(new Heap(nullptr));
  heap->impl_ = std::make_unique<Heap::Impl>(*heap, *this);
  if (!heap->impl_->space.open()) {
    OutOfMemoryInfo info;
    info.asked = options.reservation;
    info.limit = options.limit;
    info.resource = options.name;
    throw OutOfMemory("Pool::acquire", std::move(info));
  }
  ref.release();  // NOLINT(bugprone-unused-return-value): destroy() drops it
  return heap.release();
}

void PoolCore::park(Heap& heap) noexcept {
  if (heap.impl_->in_child()) [[unlikely]] {
    return;
  }
  EBB_ASSERT(heap.is_mine());
  Heap::Impl& impl = *heap.impl_;
  PoolCore& core = impl.pool;
  while (impl.replay != nullptr) {  // an open iteration goes on without
    impl.replay->leave();
  }
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

bool PoolCore::has_ended(const Heap& heap) noexcept {
  const PoolCore& core = heap.impl_->pool;
  const std::shared_lock lock(core.walk_mutex_);
  return core.closed_;
}

void PoolCore::close() noexcept {
  if (mark.in_child()) {
    return detail::leave_behind(this);
  }
  Heap* ending = nullptr;
  {
    const std::scoped_lock lock(mutex_, walk_mutex_);
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

MemoryStats PoolCore::stats(const MemoryStats& fallback) const noexcept {
  MemoryStats sum;
  if (mark.in_child()) {
    return sum;
  }
  const std::shared_lock lock(walk_mutex_);
  if (closed_) {
    return fallback;
  }
  for (const Heap* heap = heaps_.load(std::memory_order_acquire); heap != nullptr;
       heap = heap->impl_->next_heap) {
    const MemoryStats one = heap->stats();
    sum.live += one.live;
    sum.live_peak += one.live_peak;
    sum.reserved += one.reserved;
    sum.reserved_peak += one.reserved_peak;
    sum.awaiting += one.awaiting;
    sum.blocks_live += one.blocks_live;
    sum.allocations += one.allocations;
    sum.foreign_frees += one.foreign_frees;
    sum.source_calls += one.source_calls;
    sum.heaps += one.heaps;
  }
  return sum;
}

std::size_t PoolCore::trim() noexcept {
  if (mark.in_child()) {
    return 0;
  }
  std::size_t bytes = trim_parked();
  request_trims();
  const std::shared_lock lock(walk_mutex_);
  if (closed_) {
    return bytes;
  }
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
  mark.require_own_process("Pool::for_each_cell");
  const std::shared_lock lock(walk_mutex_);
  if (closed_) {
    return;
  }
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
  // The core first, unless a handle keeps it; last of all what it kept alive: that destructor is
  // the host's code, and may end what this function stands on.
  const std::shared_ptr<void> keep_alive = std::move(keep_alive_);
  const std::shared_ptr<PoolCore> self = std::move(self_);
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
    : core_(PoolCore::make(source, completed(std::move(options)))) {}

Pool::Pool(Pool&& other) noexcept = default;

Pool& Pool::operator=(Pool&& other) noexcept {
  if (this != &other) {
    if (core_ != nullptr) {
      core_->close();
    }
    core_ = std::move(other.core_);
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
bool Pool::has_ended(const Heap& heap) noexcept {
  return PoolCore::has_ended(heap);
}
bool Pool::owns(const Heap& heap) const noexcept {
  return PoolCore::owns(core_.get(), heap);
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

PoolHandle::PoolHandle(const Pool& pool) noexcept : core_(pool.core_) {}

Heap& PoolHandle::acquire() const {
  return core_->acquire();
}
MemoryStats PoolHandle::stats() const noexcept {
  return core_->stats();
}
Bytes PoolHandle::trim() const noexcept {
  return Bytes{core_->trim()};
}
void PoolHandle::for_each_cell(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                               void* context) const {
  core_->for_each_cell(since, visit, context);
}
std::uint64_t PoolHandle::cell_epoch() const noexcept {
  return core_->cell_epoch.load(std::memory_order_relaxed);
}
void PoolHandle::begin_cell_epoch() const noexcept {
  core_->cell_epoch.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace ebb::inline v0
