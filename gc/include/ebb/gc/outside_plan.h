// SPDX-License-Identifier: Apache-2.0
// For work that threads share: which of them makes what differs each time, so it is no part of what
// an iteration repeats. Used where such work is split. On the calling thread. [alloc.replay]
#pragma once

#include <ebb/gc/owner.h>

namespace ebb::inline v0 {

// Until it ends, what this thread makes is neither planned nor recorded. Work of tasks never is.
// Ends on the thread that made it.
class OutsidePlan {
 public:
  OutsidePlan() noexcept;
  OutsidePlan(const OutsidePlan&) = delete;
  OutsidePlan& operator=(const OutsidePlan&) = delete;
  OutsidePlan(OutsidePlan&&) = delete;
  OutsidePlan& operator=(OutsidePlan&&) = delete;
  ~OutsidePlan();

 private:
  Replay* saved_;
  Owner owner_;  // the thread's, whose iteration saved_ belongs to
};

// Other threads have ended their share of the iteration's work: the storages that they dropped
// count as dropped by now.
void note_join() noexcept;

}  // namespace ebb::inline v0
