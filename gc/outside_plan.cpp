// SPDX-License-Identifier: Apache-2.0
#include "slot.h"

#include <ebb/gc/outside_plan.h>

#include <utility>

namespace ebb::inline v0 {

OutsidePlan::OutsidePlan() noexcept : saved_(std::exchange(detail::slot().replay, nullptr)) {}

OutsidePlan::~OutsidePlan() {
  detail::slot().replay = saved_;
}

void note_join() noexcept {
  if (Replay* const replay = detail::slot().replay) {
    replay->join();
  }
}

}  // namespace ebb::inline v0
