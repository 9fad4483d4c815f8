// SPDX-License-Identifier: Apache-2.0
// A portfolio of greedy orders: buffers are placed one after the other, each into a hole.
// [alloc.plan] Used by plan(). Pure functions.
#pragma once

#include "plan_lanes.h"
#include "plan_problem.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace ebb::inline v0 {

struct PlanDraft {
  std::vector<std::uint64_t> offsets;  // units
  std::uint64_t height = 0;            // units
};

// Returns the lowest of several orders' plans. Stops at one that is no higher than good_enough
// units, when cancel (may be empty) says so, and when 20,000 buffers would take much longer than a
// quarter of a second. The first order is finished; cancelled, it puts what is left on top. What is
// pinned, one entry for each buffer or none at all, has its offset given.
PlanDraft greedy_plan(const PlanProblem& problem, const PlanLanes& lanes, std::uint64_t good_enough,
                      const std::function<bool()>& cancel,
                      std::span<const std::optional<std::uint64_t>> pinned = {});

}  // namespace ebb::inline v0
