// SPDX-License-Identifier: Apache-2.0
// Improves a draft until it is proven least, or the budget is spent. [alloc.plan]
// Used by plan(). Pure but for the budget.
#pragma once

#include "plan_greedy.h"
#include "plan_problem.h"
#include "plan_search.h"

#include <cstdint>

namespace ebb::inline v0 {

// Both lower the draft where they can, and return a height, in units, below which there is proven
// to be no plan.

// Looks for a plan no higher than capacity, which is less than the draft's height.
std::uint64_t fit_plan(const PlanProblem& problem, PlanDraft& draft, std::uint64_t capacity,
                       PlanBudget& budget);

// Looks for the least height: there first, then between it and the draft's.
std::uint64_t lower_plan(const PlanProblem& problem, PlanDraft& draft, PlanBudget& budget);

}  // namespace ebb::inline v0
