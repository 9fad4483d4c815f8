// SPDX-License-Identifier: Apache-2.0
// The exact search alone, without greedy orders before it, at every capacity. [alloc.plan]
#include "plan_search.h"

#include "../plan_brute_force.h"
#include "../plan_fixture.h"
#include "plan_problem.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

using ebb::Align;
using ebb::PlanBudget;
using ebb::PlanInterval;
using ebb::PlanPreference;
using ebb::PlanProblem;
using ebb::PlanSearch;
using Result = ebb::PlanSearch::Result;

namespace {

constexpr std::uint64_t enough = 10'000'000;
const std::function<bool()> never;

PlanPreference random_preference(std::mt19937_64& random, std::size_t count) {
  PlanPreference preference;
  preference.section = random() % 2 == 0 ? PlanPreference::Section::fewest_choices
                                         : PlanPreference::Section::least_slack;
  preference.rank.resize(count);
  std::iota(preference.rank.begin(), preference.rank.end(), 0U);
  std::shuffle(preference.rank.begin(), preference.rank.end(), random);
  return preference;
}

// In bytes, as validate() wants it.
ebb::Plan plan_of(const PlanProblem& problem, const PlanSearch& search) {
  ebb::Plan plan;
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    plan.offsets.emplace_back(search.offsets()[i] * problem.unit);
    height = std::max(height, search.offsets()[i] + problem.buffers[i].size);
  }
  plan.height = ebb::Bytes{height * problem.unit};
  plan.max_live = ebb::Bytes{problem.max_live * problem.unit};
  return plan;
}

}  // namespace

TEST_CASE("plan search: it finds a plan at every capacity that has one, and at no other") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const std::vector<PlanInterval> intervals = ebb::test::small_program(random);
    const PlanProblem problem = ebb::make_plan_problem(intervals, Align{1});
    const std::uint64_t least = ebb::test::BruteForce(intervals).least_height() / problem.unit;
    PlanSearch search(problem);
    PlanBudget budget{enough, never};
    const std::uint64_t lowest = problem.max_live - std::min<std::uint64_t>(problem.max_live, 1);
    for (std::uint64_t capacity = lowest; capacity <= least + 2; ++capacity) {
      const PlanPreference preference = random_preference(random, intervals.size());
      const Result result = search.run(capacity, preference, enough, budget);
      REQUIRE(result == (capacity >= least ? Result::found : Result::impossible));
      if (result == Result::found) {
        const ebb::Plan plan = plan_of(problem, search);
        REQUIRE(ebb::test::fault_of(intervals, plan) == "");
        REQUIRE(plan.height.count() <= capacity * problem.unit);
      }
    }
  }
}

TEST_CASE("plan search: what it remembers as failed never rules out a plan that exists") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  int found = 0;
  int gave_up = 0;
  for (int round = 0; round < 300; ++round) {
    // Without a few of what fills the space there are holes to choose from.
    std::vector<PlanInterval> intervals = ebb::test::perfect_intervals(random, 12 + random() % 30);
    intervals.resize(intervals.size() - random() % 8);
    const PlanProblem problem = ebb::make_plan_problem(intervals, Align{1});
    PlanSearch search(problem);
    PlanBudget budget{100'000, never};
    // One order throughout, so that each run walks through what the runs before it left.
    const PlanPreference preference = random_preference(random, intervals.size());
    Result result = Result::gave_up;
    for (std::uint64_t nodes = 30; result == Result::gave_up && budget.nodes > 0; nodes *= 2) {
      result = search.run(1024 / problem.unit, preference, nodes, budget);
      gave_up += result == Result::gave_up ? 1 : 0;
    }
    REQUIRE(result != Result::impossible);
    found += result == Result::found ? 1 : 0;
  }
  CHECK(gave_up > 0);
  CHECK(found > 0);
}
