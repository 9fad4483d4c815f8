// SPDX-License-Identifier: Apache-2.0
// A thread's heaps of devices, in a table that is as plain as the slot. [gc.owner]
#include "device_heaps.h"

#include <array>
#include <span>

namespace ebb::inline v0::detail {
namespace {

struct TakenHeap {
  std::uint64_t pool;  // its number
  Heap* heap;
  std::uint32_t scopes;  // how many OwnerScopes surrounded its taking
};

// A thread that works on more of them at a time asks the pool each time. The slot has their number,
// so that a forked child begins with none.
constexpr std::size_t taken_most = 8;
constinit thread_local std::array<TakenHeap, taken_most> taken{};

std::span<TakenHeap> taken_heaps() noexcept {
  return std::span(taken).first(slot().device_heaps);
}

template <class Condition>
void park_if(Condition wanted) noexcept {
  std::uint8_t kept = 0;
  for (const TakenHeap& it : taken_heaps()) {
    if (wanted(it)) {
      Pool::park(*it.heap);
    } else {
      taken[kept++] = it;
    }
  }
  slot().device_heaps = kept;
}

}  // namespace

DeviceHeapLease::DeviceHeapLease(DevicePool& pool, Domain& domain) {
  for (const TakenHeap& it : taken_heaps()) {
    if (it.pool == pool.number) {
      heap_ = it.heap;
      return;
    }
  }
  domain.require_usable("Storage::make");
  // Of runtimes that other threads have ended: they would stay, and leave no room for those in use.
  park_if([](const TakenHeap& it) { return Pool::has_ended(*it.heap); });
  heap_ = &pool.acquire(domain.weak_from_this().lock());
  Slot& s = slot();
  temporary_ = s.device_heaps == taken_most || !keeps_heaps();
  if (!temporary_) {
    watch_thread_end();
    taken[s.device_heaps++] = {pool.number, heap_, s.scopes};
  }
}

void park_device_heaps_within(std::uint32_t scopes) noexcept {
  park_if([scopes](const TakenHeap& it) { return it.scopes > scopes; });
}

void park_device_heaps() noexcept {
  park_if([](const TakenHeap&) { return true; });
}

void park_device_heap_of_pool(std::uint64_t pool) noexcept {
  park_if([pool](const TakenHeap& it) { return it.pool == pool; });
}

}  // namespace ebb::inline v0::detail
