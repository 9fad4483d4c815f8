// SPDX-License-Identifier: Apache-2.0
// The struct behind a storage: lives in a heap's cell, type-stable, readable at any time through
// its atomics. Private to gc. Plain fields are written before weak becomes 1 (release) and may be
// read by whoever raised weak from a value above 0 (acquire).
#pragma once

#include "owner_record.h"

#include <ebb/alloc/data_ptr.h>
#include <ebb/gc/birth.h>
#include <ebb/gc/storage.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace ebb::inline v0::detail {

struct Finalizer {
  void (*call)(void* context) noexcept;
  void* context;
  Finalizer* next;
};

struct StorageCell : StorageHead {
  // Who is charged: the owner word of [gc.count]. Null: dead, or never alive. Changed by transfer
  // (compare-and-exchange) and by the last release (exchange); acquire and release, so that a
  // transfer's count is seen by the release that undoes it.
  std::atomic<OwnerRecord*> owner{nullptr};
  // Whether it was adopted as a straggler; whoever exchanges it back to false uncounts it.
  std::atomic<bool> adopted{false};
  std::atomic<const char*> name{nullptr};
  Heap* home = nullptr;
  DataPtr ptr;
  Birth birth;
  const char* phase = nullptr;
  std::uint64_t sequence = 0;
  std::uint64_t iteration = 0;
  std::uint64_t thread = 0;
  Finalizer* finalizers = nullptr;  // in order; guarded by the domain's finalizer lock

  static void construct(void* memory) noexcept { new (memory) StorageCell; }

  // Raises weak if the cell is in use; then the plain fields may be read until unpin().
  bool pin() noexcept {
    std::uint32_t count = weak.load(std::memory_order_relaxed);
    while (count != 0) {
      if (weak.compare_exchange_weak(count, count + 1, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  void unpin() noexcept {
    if (weak.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      storage_last_weak(this);
    }
  }
};

static_assert(sizeof(StorageCell) <= cell_bytes.count());

inline std::int64_t signed_bytes(Bytes bytes) noexcept {
  return static_cast<std::int64_t>(bytes.count());
}

}  // namespace ebb::inline v0::detail
