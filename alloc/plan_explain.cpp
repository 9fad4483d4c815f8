// SPDX-License-Identifier: Apache-2.0
#include "plan_explain.h"

#include <algorithm>
#include <cstddef>

namespace ebb::inline v0 {

namespace {

std::size_t most_crowded(const PlanProblem& problem, std::size_t first, std::size_t last) {
  const auto begin = problem.live.begin();
  return static_cast<std::size_t>(std::max_element(begin + static_cast<std::ptrdiff_t>(first),
                                                   begin + static_cast<std::ptrdiff_t>(last + 1)) -
                                  begin);
}

std::size_t highest_buffer(const PlanProblem& problem, const Plan& plan) {
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const std::uint64_t end = plan.offsets[i].count() + problem.buffers[i].size * problem.unit;
    if (end == plan.height.count()) {
      return i;
    }
  }
  return 0;
}

}  // namespace

PlanShortfall explain_shortfall(const PlanProblem& problem, std::span<const PlanInterval> intervals,
                                const Plan& plan, std::uint64_t capacity) {
  PlanShortfall shortfall;
  std::size_t section = 0;
  if (plan.max_live.count() > capacity) {
    section = most_crowded(problem, 0, problem.live.size() - 1);
    shortfall.excess = Bytes{plan.max_live.count() - capacity};
    shortfall.proven = true;
  } else {
    const PlanBuffer& top = problem.buffers[highest_buffer(problem, plan)];
    section = most_crowded(problem, top.first, top.last);
    shortfall.excess = Bytes{plan.height.count() - capacity};
  }
  shortfall.moment = problem.moments[section];
  shortfall.live = Bytes{problem.live[section] * problem.unit};
  std::vector<std::size_t> alive;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].first <= section && section <= problem.buffers[i].last) {
      alive.push_back(i);
    }
  }
  std::stable_sort(alive.begin(), alive.end(), [&](std::size_t a, std::size_t b) {
    return problem.buffers[a].size > problem.buffers[b].size;
  });
  for (const std::size_t i : alive) {
    shortfall.ids.push_back(intervals[i].id);
  }
  return shortfall;
}

}  // namespace ebb::inline v0
