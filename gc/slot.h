// SPDX-License-Identifier: Apache-2.0
// The one thread-local slot of the process, and the heap that a thread allocates from.
// Private to gc. Each function works on the calling thread's slot only. [gc.owner] [rt.global]
#pragma once

#include "owner_record.h"

#include <ebb/gc/owner.h>

#include <cstdint>

namespace ebb::inline v0::detail {

// Plain data, so that reading it needs no guard. In the default model: the quicker initial-exec one
// would keep ebb from being loaded late, as Python does with extensions, once others have used the
// room for it up; in a program the linker makes both the same.
extern constinit thread_local Slot this_slot;

// Returns this thread's slot. Valid until the thread has ended.
inline Slot& slot() noexcept {
  return this_slot;
}

// The same, for who reads it again and again: the compiler keeps the address, where it would ask
// for it each time anew, which in a shared library is a call.
inline Slot& kept_slot() noexcept {
  Slot* kept = &this_slot;
  asm("" : "+r"(kept));
  return *kept;
}

// From now on a forked child begins with an empty slot: what its parent's named is not to be used.
// Throws std::bad_alloc. [rt.fork]
void install_slot_hook();

// From now on the end of this thread parks its heaps, and tells an open guard.
void watch_thread_end() noexcept;

// Whether this thread keeps heaps that it takes: not while it ends, nor where nobody tells when it
// has gone idle, as a pool's thread with a fallback owner.
bool keeps_heaps() noexcept;

// Asks the system for this thread's number and keeps it in the slot.
std::uint64_t ask_thread_number() noexcept;

// Returns this thread's number, as the system counts threads. Never 0.
inline std::uint64_t this_thread_number() noexcept {
  const std::uint64_t known = this_slot.thread;
  return known != 0 ? known : ask_thread_number();
}

// Returns the owner that a FallbackOwner gives this thread, or none: for where the slot has none.
Owner fallback_owner() noexcept;

// Makes owner the current one and puts what was there into saved; the way back restores it. A heap
// that was taken in between stays in the slot (keep_heap, when there was none before) or is parked.
void enter_owner(Slot& saved, Owner owner) noexcept;
// The same for the owner of an iteration, in parts: a copy of what was written a moment ago in
// narrower pieces would wait for them.
void enter_iteration(Slot& saved, OwnerRecord& record, std::uint64_t generation, Stream stream,
                     Replay* replay) noexcept;
void leave_owner(const Slot& saved, bool keep_heap) noexcept;

// Replaces the slot's owner if its iteration has closed: by the runtime, as late, within an
// OwnerScope; else by none. Only misuse of guards and work past a deadline lead to it.
void drop_stale_owner() noexcept;

// Parks the heap of this thread's slot when it comes from the pool numbered pool and is not an
// enclosing scope's.
void park_heap_of_pool(std::uint64_t pool) noexcept;

// A cell with a block of heap: as the iteration's plan has it, where the thread is in one.
inline Cell* take_cell_with_block(Replay* replay, Heap& heap, Bytes bytes, Align align,
                                  const Stream& stream, const Place& place) noexcept {
  return replay != nullptr ? replay->take_cell_with_block(heap, bytes, align, stream, place)
                           : heap.take_cell_with_block(bytes, align, stream);
}

// The heap of one allocation: the slot's when it fits the record's pool; else one is taken from
// the pool, which stays in the slot unless an enclosing scope's heap is there.
class HeapLease {
 public:
  // Throws OutOfMemory when a new heap cannot be made, and ForkedError in a forked child, which
  // has no heap in the slot and so comes to take().
  explicit HeapLease(const OwnerRecord& record) {
    const Slot& s = slot();
    if (s.heap != nullptr && s.heap_pool == record.pool_number) {
      heap_ = s.heap;
    } else {
      take(record);
    }
  }
  HeapLease(const HeapLease&) = delete;
  HeapLease& operator=(const HeapLease&) = delete;
  HeapLease(HeapLease&&) = delete;
  HeapLease& operator=(HeapLease&&) = delete;
  ~HeapLease() {
    if (temporary_) {
      Pool::park(*heap_);
    }
  }

  Heap& heap() const noexcept { return *heap_; }
  Cell* take_cell_with_block(Bytes bytes, Align align, const Stream& stream,
                             const Place& place) noexcept {
    Replay* const replay = temporary_ ? nullptr : slot().replay;
    return detail::take_cell_with_block(replay, *heap_, bytes, align, stream, place);
  }

 private:
  void take(const OwnerRecord& record);

  Heap* heap_ = nullptr;
  bool temporary_ = false;
};

}  // namespace ebb::inline v0::detail
