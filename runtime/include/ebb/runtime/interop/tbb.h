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

// Returns function carrying the current owner, for the bodies of the host's own TBB loops. It is no
// job: the loop it is used in must end within the iteration. Throws on a thread without an owner.
//
//   tbb::parallel_for(range, ebb::carry([&](const auto& part) { ... }));
template <class F>
Carried<std::decay_t<F>> carry(F&& function) {
  return {std::forward<F>(function), Owner::current("carry")};
}

}  // namespace ebb::inline v0
