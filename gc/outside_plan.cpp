// SPDX-License-Identifier: Apache-2.0
#include "slot.h"

#include <ebb/gc/outside_plan.h>

#include <utility>

namespace ebb::inline v0 {

OutsidePlan::OutsidePlan() noexcept
    : saved_(std::exchange(detail::slot().replay, nullptr)), owner_(detail::slot().owner) {}

// Within, the iteration may have been closed, another one opened, or the process forked.
OutsidePlan::~OutsidePlan() {
  if (saved_ != nullptr && detail::slot().owner == owner_) {
    detail::slot().replay = saved_;
  }
}

void note_join() noexcept {
  const detail::Slot& slot = detail::slot();
  if (slot.replay == nullptr) {
    return;
  }
  slot.replay->join();
  if (slot.owner.record()->devices != nullptr) {
    slot.owner.record()->devices->join_replay();
  }
}

}  // namespace ebb::inline v0
