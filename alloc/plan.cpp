// SPDX-License-Identifier: Apache-2.0
// From intervals to a plan: greedy orders, the exact search, and what is told of them.
#include "plan_exact.h"
#include "plan_explain.h"
#include "plan_greedy.h"
#include "plan_lanes.h"
#include "plan_problem.h"

#include <ebb/alloc/plan.h>

namespace ebb::inline v0 {

namespace {

// Above it the search looks at too much per node to get anywhere, and would recurse too deeply.
constexpr std::size_t max_searched = 4000;

Bytes bytes_of(const PlanProblem& problem, std::uint64_t units) {
  return Bytes{units * problem.unit};
}

}  // namespace

double plan_gap(Bytes height, Bytes max_live) noexcept {
  return max_live.count() == 0
             ? 0.0
             : static_cast<double>(height.count()) / static_cast<double>(max_live.count()) - 1.0;
}

Plan plan(std::span<const PlanInterval> intervals, Align align, const PlanOptions& options) {
  const PlanProblem problem = make_plan_problem(intervals, align);
  const PlanLanes lanes(intervals, options.edges);
  const std::uint64_t capacity =
      options.capacity ? options.capacity->count() / problem.unit : problem.max_live;
  PlanDraft draft =
      greedy_plan(problem, lanes, std::max(capacity, problem.max_live), options.cancel);

  std::uint64_t bound = problem.max_live;  // proven: no plan is lower
  PlanBudget budget{options.nodes, options.cancel};
  const bool searched = !lanes.several() && problem.buffers.size() <= max_searched;
  if (searched && options.nodes > 0 && draft.height > std::max(capacity, bound)) {
    bound = options.capacity ? fit_plan(problem, draft, capacity, budget)
                             : lower_plan(problem, draft, budget);
  }

  Plan result;
  for (const std::uint64_t offset : draft.offsets) {
    result.offsets.push_back(bytes_of(problem, offset));
  }
  result.height = bytes_of(problem, draft.height);
  result.max_live = bytes_of(problem, problem.max_live);
  result.exact = draft.height <= bound;
  result.nodes = options.nodes - budget.nodes;
  const bool fits = options.capacity && draft.height <= capacity;
  const bool impossible = options.capacity && bound > capacity;
  result.cut_short = !result.exact && !fits && !impossible;
  if (options.capacity && !fits) {
    result.shortfall = explain_shortfall(problem, intervals, result, options.capacity->count());
    result.shortfall->proven = impossible;
  }
  return result;
}

}  // namespace ebb::inline v0
