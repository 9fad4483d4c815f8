// SPDX-License-Identifier: Apache-2.0
// The thread-local slot: entering and leaving owners, and which heap stays with the thread.
#include "slot.h"

#include "device_heaps.h"
#include "domain_impl.h"

#include <new>
#include <utility>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ebb::inline v0::detail {

// Its destructor is ParkAtExit below.
constinit thread_local Slot this_slot;

namespace {

constinit thread_local bool thread_ended = false;

// Ends what the thread leaves behind: parks the heap that is still in the slot when the thread
// ends.
struct ParkAtExit {
  bool armed = false;
  ParkAtExit() = default;
  ParkAtExit(const ParkAtExit&) = delete;
  ParkAtExit& operator=(const ParkAtExit&) = delete;
  ParkAtExit(ParkAtExit&&) = delete;
  ParkAtExit& operator=(ParkAtExit&&) = delete;
  ~ParkAtExit() {
    thread_ended = true;
    drop_stale_owner();
    // A guard that is still open is another thread's to end, or nobody's.
    std::shared_ptr<Domain> kept;
    if (this_slot.owner.is_open() && this_slot.owner.kind() == OwnerKind::iteration) {
      kept = this_slot.owner.record()->end_opener();
    }
    if (this_slot.heap != nullptr && !this_slot.heap_inherited) {
      Pool::park(*this_slot.heap);
    }
    park_device_heaps();
    this_slot = Slot{};
  }
};
thread_local ParkAtExit park_at_exit;

void empty_slot_in_child() noexcept {
  Slot empty;
  empty.phase = this_slot.phase;
  empty.watched = this_slot.watched;
  empty.has_fallbacks = this_slot.has_fallbacks;
  empty.forked = this_slot.forked || this_slot.owner;
  empty.forks = static_cast<std::uint8_t>(this_slot.forks + 1);
  this_slot = empty;
}

}  // namespace

void install_slot_hook() {
  static const int refused = ::pthread_atfork(nullptr, nullptr, empty_slot_in_child);
  if (refused != 0) {
    throw std::bad_alloc();
  }
}

void watch_thread_end() noexcept {
  park_at_exit.armed = true;  // constructs it, so that its destructor runs
  this_slot.watched = true;
}

bool keeps_heaps() noexcept {
  return !thread_ended && (this_slot.owner || !fallback_owner());
}

std::uint64_t ask_thread_number() noexcept {
  this_slot.thread = static_cast<std::uint64_t>(syscall(SYS_gettid));
  return this_slot.thread;
}

namespace {

// Of an owner that has closed. Where another thread has ended the guard, the replay is still this
// one's to end; else it has ended with its iteration, and may be that of any thread's next one.
void drop_stale_replay(const OwnerRecord& record) noexcept {
  Replay* const replay = std::exchange(this_slot.replay, nullptr);
  if (replay != nullptr && record.ended_elsewhere.load(std::memory_order_relaxed)) {
    replay->end();
    if (record.devices != nullptr) {
      record.devices->end_replay();
    }
  }
}

// The slot's heap is the enclosing scope's from now on, and not for an owner of another pool: then
// saved has it, and the scope takes one of its own pool when needed.
void inherit_heap(const OwnerRecord* record) noexcept {
  if (this_slot.heap != nullptr) {
    const bool fits = record == nullptr || record->pool_number == this_slot.heap_pool;
    this_slot.heap = fits ? this_slot.heap : nullptr;
    this_slot.heap_inherited = fits;
  }
}

// After a change of the owner or the heap.
void note_own() noexcept {
  OwnerRecord* const record = this_slot.owner.record();
  const bool own = record != nullptr && this_slot.heap != nullptr &&
                   this_slot.heap_pool == record->pool_number &&
                   record->opener.load(std::memory_order_relaxed) == this_slot.thread &&
                   is_open(this_slot.owner);
  this_slot.own = own ? record : nullptr;
}

}  // namespace

void enter_owner(Slot& saved, Owner owner) noexcept {
  saved = this_slot;
  this_slot.owner = owner;
  this_slot.replay = nullptr;
  inherit_heap(owner.record());
  note_own();
}

void enter_iteration(Slot& saved, OwnerRecord& record, std::uint64_t generation, Stream stream,
                     Replay* replay) noexcept {
  saved = this_slot;
  this_slot.replay = replay;
  this_slot.owner = Owner(record, generation, stream);
  inherit_heap(&record);
  note_own();
}

void leave_owner(const Slot& saved, bool keep_heap) noexcept {
  if (saved.forks != this_slot.forks) {
    return;  // saved before a fork: all of the slot is this process's own
  }
  Heap* const mine = this_slot.heap_inherited ? nullptr : this_slot.heap;
  const std::uint64_t pool = this_slot.heap_pool;
  Slot restored = saved;
  // These are the thread's, or end with guards of their own, which may cross this one.
  restored.thread = this_slot.thread;
  restored.watched = this_slot.watched;
  restored.has_fallbacks = this_slot.has_fallbacks;
  restored.device_heaps = this_slot.device_heaps;
  restored.phase = this_slot.phase;
  restored.defer_releases = this_slot.defer_releases;
  this_slot = restored;
  if (this_slot.replay != nullptr && !is_open(this_slot.owner)) [[unlikely]] {
    drop_stale_replay(*this_slot.owner.record());
  }
  if (mine != nullptr && mine == this_slot.heap) [[unlikely]] {
    this_slot.heap_inherited = false;  // guards have ended in no order: it is in use on
  } else if (mine != nullptr && saved.heap == nullptr && keep_heap && !thread_ended) {
    this_slot.heap = mine;  // the next scope of the same pool finds it: no lock per iteration
    this_slot.heap_pool = pool;
    this_slot.heap_inherited = false;
  } else if (mine != nullptr) {
    Pool::park(*mine);
  }
  note_own();
}

void drop_stale_owner() noexcept {
  OwnerRecord* const record = this_slot.owner.record();
  if (record == nullptr || is_open(this_slot.owner)) [[likely]] {
    return;
  }
  drop_stale_replay(*record);
  this_slot.own = nullptr;
  if (this_slot.scopes > 0) {
    // Of no generation, so that each charge to it is found late: in tasks that inherit it, too.
    this_slot.owner = {*record->domain->impl().long_lived, 0, this_slot.owner.stream()};
    return;
  }
  this_slot.owner = Owner{};
  record->forget_opener();
}

void park_heap_of_pool(std::uint64_t pool) noexcept {
  if (this_slot.heap != nullptr && !this_slot.heap_inherited && this_slot.heap_pool == pool) {
    Pool::park(*this_slot.heap);
    this_slot.heap = nullptr;
    this_slot.own = nullptr;
  }
}

void HeapLease::take(const OwnerRecord& record) {
  record.domain->impl().require_usable("Storage::make");
  Heap& taken = record.pool.acquire();
  heap_ = &taken;
  const bool inherited = this_slot.heap != nullptr && this_slot.heap_inherited;
  if (inherited || !keeps_heaps()) {
    temporary_ = true;
    return;
  }
  if (this_slot.heap != nullptr) {
    Pool::park(*this_slot.heap);
  }
  watch_thread_end();
  this_slot.heap = &taken;
  this_slot.heap_pool = record.pool_number;
  this_slot.heap_inherited = false;
  note_own();
}

}  // namespace ebb::inline v0::detail
