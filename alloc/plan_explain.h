// SPDX-License-Identifier: Apache-2.0
// Why a plan does not meet a capacity. [alloc.plan] Used by plan(). Pure.
#pragma once

#include "plan_problem.h"

#include <cstdint>
#include <span>

namespace ebb::inline v0 {

// Where the intervals alone need more than capacity bytes: the moment at which most is alive. Else
// the most crowded moment under the top of the plan, which is higher than the capacity. `proven` is
// for the caller to set in the second case.
PlanShortfall explain_shortfall(const PlanProblem& problem, std::span<const PlanInterval> intervals,
                                const Plan& plan, std::uint64_t capacity);

}  // namespace ebb::inline v0
