// SPDX-License-Identifier: Apache-2.0
#include "plan_pinned.h"

#include "plan_greedy.h"
#include "plan_lanes.h"
#include "plan_problem.h"

#include <vector>

namespace ebb::inline v0 {

std::optional<Plan> plan_around(std::span<const PlanInterval> intervals, Align align,
                                std::span<const std::optional<Bytes>> pinned) {
  const PlanProblem problem = make_plan_problem(intervals, align);
  std::vector<std::optional<std::uint64_t>> units;
  for (const std::optional<Bytes>& offset : pinned) {
    // Another set of sizes may have another unit.
    if (offset && offset->count() % problem.unit != 0) {
      return std::nullopt;
    }
    units.push_back(offset ? std::optional(offset->count() / problem.unit) : std::nullopt);
  }
  const PlanDraft draft =
      greedy_plan(problem, PlanLanes(intervals, {}), problem.max_live, {}, units);
  Plan plan;
  for (const std::uint64_t offset : draft.offsets) {
    plan.offsets.push_back(Bytes{offset * problem.unit});
  }
  plan.height = Bytes{draft.height * problem.unit};
  plan.max_live = Bytes{problem.max_live * problem.unit};
  plan.exact = plan.height == plan.max_live;
  return validate(intervals, align, plan) ? std::nullopt : std::optional(std::move(plan));
}

}  // namespace ebb::inline v0
