// SPDX-License-Identifier: Apache-2.0
// The struct behind a storage: lives in a heap's cell, type-stable, readable at any time through
// its atomics. Private to gc. Plain fields are written before the owner word is set, and may be
// read by whoever holds a reference or has pinned that word.
#pragma once

#include "owner_word.h"

#include <ebb/alloc/block.h>
#include <ebb/alloc/data_ptr.h>
#include <ebb/gc/birth.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/storage.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

namespace ebb::inline v0::detail {

struct Finalizer {
  void (*call)(void* context) noexcept;
  void* context;
  Finalizer* next;
};

struct StorageCell : StorageHead {
  // The order is by use: handles read the head, which is a line of the cache, the last release the
  // next line, and reports the rest.
  OwnerWord owner;
  Heap* home = nullptr;
  DataPtr ptr;                      // of what has no block of its cell's
  Finalizer* finalizers = nullptr;  // in order; guarded by the domain's finalizer lock
  // One more than the bytes that it counts as an adopted straggler; 0: none. Whoever exchanges it
  // back to 0 uncounts it.
  std::atomic<std::int64_t> adopted{0};
  std::atomic<const char*> name{nullptr};
  std::atomic<const char*> holder{nullptr};  // the last one's; counts while there are holders
  std::uint64_t thread = 0;
  std::uint64_t sequence = 0;
  std::uint64_t iteration = 0;
  const char* phase = nullptr;
  Birth birth;

  // Any thread. uncount takes the storage off the domain's figures of adopted ones if it still is
  // in them; change counts it for by bytes more.
  void uncount_adopted(Domain::Impl& domain) noexcept;
  void change_adopted(Domain::Impl& domain, std::int64_t by) noexcept;

  // The block that the storage owns; null when it is made of something else.
  BlockRecord* owned_block() const noexcept { return block != nullptr ? block : record_of(ptr); }
  // Has the pointer own it, for who changes it.
  DataPtr& own_by_ptr() noexcept {
    if (block != nullptr) {
      BlockRecord* const owned = std::exchange(block, nullptr);
      ptr = own_block(owned->block(owned->data));
    }
    return ptr;
  }

  static void construct(void* memory) noexcept { new (memory) StorageCell; }

  void unpin() noexcept {
    if (owner.unpin()) {
      storage_drop_weak(this);
    }
  }
};

static_assert(sizeof(StorageCell) <= cell_bytes.count());

// Every cell of a pool of gc's is a storage's.
inline StorageCell& cell_of(Cell& cell) noexcept {
  return *static_cast<StorageCell*>(static_cast<StorageHead*>(&cell));
}
// Every head is a cell's.
inline StorageCell& cell_of(StorageHead* head) noexcept {
  return *static_cast<StorageCell*>(head);
}

inline std::int64_t signed_bytes(Bytes bytes) noexcept {
  return static_cast<std::int64_t>(bytes.count());
}

}  // namespace ebb::inline v0::detail
