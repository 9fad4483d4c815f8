// SPDX-License-Identifier: Apache-2.0
// Who new storages are charged to: an iteration, a loader, or the runtime. The owner is part of the
// running task; the thread-local slot is only a cache of it. [gc.owner]
#pragma once

#include <ebb/alloc/heap.h>
#include <ebb/alloc/stream.h>

#include <cstdint>
#include <memory>
#include <type_traits>

namespace ebb::inline v0 {

class Domain;
class OwnerRecord;
class Replay;

enum class OwnerKind : std::uint8_t { runtime, iteration, loader };

// A copyable handle: (charged to, heap, stream). The heap follows from what is charged and from
// the thread. It stays safe to use after its iteration has closed, as long as the runtime lives:
// what is made with it then is charged to the runtime and counted as late.
class Owner {
 public:
  constexpr Owner() = default;
  Owner(OwnerRecord& record, std::uint64_t generation, Stream stream) noexcept
      : record_(&record), generation_(generation), stream_(stream) {}

  // Returns the owner of the running task. Throws std::invalid_argument, with the remedy, on a
  // thread that has none, and ForkedError where a fork has taken it away.
  static Owner current(const char* function);
  // Returns the owner of the running task, false when it has none.
  static Owner current_or_none() noexcept;

  explicit operator bool() const noexcept { return record_ != nullptr; }
  OwnerRecord* record() const noexcept { return record_; }
  std::uint64_t generation() const noexcept { return generation_; }
  const Stream& stream() const noexcept { return stream_; }
  // Returns the same owner with another stream.
  Owner on(Stream stream) const noexcept {
    Owner other = *this;
    other.stream_ = stream;
    return other;
  }
  // Returns whether what it names is still open. Any thread.
  bool is_open() const noexcept;
  OwnerKind kind() const noexcept;
  Domain* domain() const noexcept;

  friend bool operator==(const Owner& a, const Owner& b) noexcept {
    return a.record_ == b.record_ && a.generation_ == b.generation_ && a.stream_ == b.stream_;
  }

 private:
  OwnerRecord* record_ = nullptr;
  std::uint64_t generation_ = 0;
  Stream stream_;
};

namespace detail {

// The thread-local slot, by value. Trivial, so that reading it costs nothing.
struct Slot {
  Owner owner;
  Heap* heap = nullptr;         // owned by this thread, from the pool numbered heap_pool
  std::uint64_t heap_pool = 0;  // numbers of pools are never reused
  // The owner's record, if it is of an iteration that this thread has open and heap is of its pool.
  OwnerRecord* own = nullptr;
  bool heap_inherited = false;    // the heap is an enclosing scope's: not ours to park
  bool asks_host = false;         // it runs the host's on_out_of_memory
  bool defer_releases = false;    // last references only enqueue, see DeferReleases
  bool forked = false;            // an owner was here when this process was forked
  std::uint8_t forks = 0;         // modulo 256: what was saved before a fork is not restored after
  bool watched = false;           // the end of the thread cleans up
  bool has_fallbacks = false;     // it has entered a FallbackOwner once
  std::uint8_t device_heaps = 0;  // how many heaps of devices this thread has, see device_heaps.h
  std::uint32_t scopes = 0;       // OwnerScopes around what runs now
  const char* phase = nullptr;
  Replay* replay = nullptr;  // of the innermost iteration, where what is made belongs to its plan
  std::uint64_t thread = 0;  // the system's number of this thread; 0: not asked yet
};

}  // namespace detail

// What becomes of a heap that a thread without one took within a scope.
enum class HeapStay : std::uint8_t {
  with_thread,  // the next scope uses it again without a lock; parked when the thread ends
  with_scope,   // parked when the scope ends: for pool threads, which may idle for ever
};

// Makes owner the current one of this thread until the scope ends, then restores what was there:
// every task that ebb runs is wrapped in one. Not movable; ends on the thread that made it.
class OwnerScope {
 public:
  explicit OwnerScope(Owner owner, HeapStay stay = HeapStay::with_thread) noexcept;
  OwnerScope(const OwnerScope&) = delete;
  OwnerScope& operator=(const OwnerScope&) = delete;
  OwnerScope(OwnerScope&&) = delete;
  OwnerScope& operator=(OwnerScope&&) = delete;
  ~OwnerScope();

 private:
  detail::Slot saved_;
  HeapStay stay_;
};

// Has what this thread makes for its current owner, without naming one, be on stream, until it ends
// and restores what was there. Iterations that are opened meanwhile inherit the stream, and bind()
// carries it; what is made for an iteration by its name stays on the stream that it was opened
// under. Ends on the thread that made it. [rt.stream]
//
//   ebb::StreamScope on(rt, stream);
//   ebb::Iteration it(loop);
//   ebb::Tensor x = ebb::empty(it, {64, 784});  // on the stream's device
class StreamScope {
 public:
  // owner is charged on a thread that has none: a Runtime converts to one. Throws
  // std::invalid_argument for a stream that is not known there, and on a thread whose owner is of
  // another runtime.
  StreamScope(const Owner& owner, Stream stream);
  // A DeviceStream that nobody holds would end before the scope does.
  template <class S>
    requires(!std::is_lvalue_reference_v<S> && !std::is_same_v<std::remove_cv_t<S>, Stream>)
  StreamScope(const Owner& owner, S&& stream)
  = delete;
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
  StreamScope(StreamScope&&) = delete;
  StreamScope& operator=(StreamScope&&) = delete;
  ~StreamScope();

 private:
  Owner saved_;
  Owner set_;
  std::shared_ptr<Domain> kept_;  // where nothing else keeps what set_ names
};

// Labels what this thread makes until it ends; reports show the innermost label. label must
// outlive the storages made under it: use a literal.
class Phase {
 public:
  explicit Phase(const char* label) noexcept;
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  Phase(Phase&&) = delete;
  Phase& operator=(Phase&&) = delete;
  ~Phase();

 private:
  const char* saved_;
};

}  // namespace ebb::inline v0
