// SPDX-License-Identifier: Apache-2.0
// An owner for threads that somebody else runs and that have none: what ArenaOwner is built on, and
// a host that has hooks for the threads of a pool of its own. [gc.owner]
#pragma once

#include <ebb/gc/owner.h>

#include <memory>

namespace ebb::inline v0 {

// Threads that have entered it charge to its owner until they leave or it ends, whichever comes
// first, so a pool may well forget to tell that a thread has left. It is what a thread has where
// nothing closer says whom to charge: an Iteration, an OwnerScope, a task or a bound function comes
// first, and none of them can disturb it. Of several, the one entered last that has not ended
// counts.
//
// Any thread, many at once; but the destructor, which ends it too, while no other call is under
// way. End it once what shall be charged to the owner is made: before the owner's iteration closes.
class FallbackOwner {
 public:
  // Throws std::invalid_argument, which names function, when owner is empty.
  FallbackOwner(Owner owner, const char* function);
  FallbackOwner(const FallbackOwner&) = delete;
  FallbackOwner& operator=(const FallbackOwner&) = delete;
  FallbackOwner(FallbackOwner&&) = delete;
  FallbackOwner& operator=(FallbackOwner&&) = delete;
  ~FallbackOwner() { end(); }

  // Applies to the calling thread from now on. Calls may nest. Where there is no memory to note it,
  // the thread stays without: its factories then say so.
  void enter() noexcept;
  // Takes the calling thread's last enter back, in any order with those of others. Nothing, when
  // there is none.
  void leave() noexcept;
  // No thread charges to it any more.
  void end() noexcept;

  struct Lent;  // what threads hold on to

 private:
  std::shared_ptr<Domain> domain_;  // so that the owner may be asked until the end
  std::shared_ptr<Lent> lent_;
};

}  // namespace ebb::inline v0
