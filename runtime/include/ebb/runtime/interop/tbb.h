// SPDX-License-Identifier: Apache-2.0
// For hosts that use oneTBB themselves: lend ebb a task arena, and take the owner into raw TBB
// loops. Opt-in: the only header of ebb that includes TBB's.
#pragma once

#include <ebb/runtime/executor.h>

#include <tbb/task_arena.h>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace ebb::inline v0 {

// Returns an executor that runs its tasks in arena, which the host keeps: it must outlive the
// executor, and ebb changes nothing about it. Thread-safe. [rt.exec]
std::unique_ptr<Executor> borrow_arena(tbb::task_arena& arena);

// A copyable function object that runs function under an owner, on whichever worker TBB picks.
template <class F>
class Carried {
 public:
  Carried(F function, Owner owner) : function_(std::move(function)), owner_(owner) {}

  template <class... Args>
    requires std::invocable<const F&, Args...>
  decltype(auto) operator()(Args&&... args) const {
    const OwnerScope scope(owner_, HeapStay::with_scope);
    return function_(std::forward<Args>(args)...);
  }

 private:
  F function_;
  Owner owner_;
};

// Returns function carrying the current owner, for the bodies of the host's own TBB loops: the sure
// way, whatever else the arena runs. It is no job: the loop it is used in must end within the
// iteration. Throws on a thread without an owner.
//
//   tbb::parallel_for(range, ebb::carry([&](const auto& part) { ... }));
template <class F>
Carried<std::decay_t<F>> carry(F&& function) {
  return {std::forward<F>(function), Owner::current("carry")};
}

// While it lives, threads that work in a TBB arena and have no owner of their own charge to owner,
// and so does the calling thread, as in an OwnerScope: raw loops need nothing else. It is no job:
// end it after the loops that it is for, before the iteration, on the thread that made it. It costs
// three small heap allocations; each storage that a worker makes under it takes a lock, which
// carry spares. TBB keeps a small record of a thread's last one, which leak checkers may see at the
// end.
//
//   tbb::task_arena arena;
//   ebb::Iteration it(loop);
//   ebb::ArenaOwner with(arena, it);
//   arena.execute([&] { tbb::parallel_for(range, [&](const auto& part) { ... }); });
//
// TBB's tasks do not say who spawned them, so the sure way is carry where
// - work of two owners shares an arena: of several ArenaOwners the newest counts;
// - a thread in a task of ebb's, a bound function or another iteration takes a raw task while it
//   waits: it charges the owner that it has;
// - execute is called on a full arena, which runs the function on another thread;
// - a thread has been in a task of the arena since before and starts a loop there itself: it is not
//   announced until it takes a task of another thread's.
// [gc.owner]
class ArenaOwner {
 public:
  // For the arena that this thread is in: outside of any, the one in which its loops run. Throws
  // std::invalid_argument when owner is empty.
  explicit ArenaOwner(Owner owner);
  ArenaOwner(tbb::task_arena& arena, Owner owner);
  ArenaOwner(const ArenaOwner&) = delete;
  ArenaOwner& operator=(const ArenaOwner&) = delete;
  ArenaOwner(ArenaOwner&&) = delete;
  ArenaOwner& operator=(ArenaOwner&&) = delete;
  ~ArenaOwner();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ebb::inline v0
