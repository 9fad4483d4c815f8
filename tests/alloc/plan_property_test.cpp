// SPDX-License-Identifier: Apache-2.0
// Plans of random programs, judged by validate() and by a brute-force optimum. [alloc.plan]
#include "plan_brute_force.h"
#include "plan_fixture.h"

#include <ebb/alloc/plan.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using ebb::Align;
using ebb::Bytes;
using ebb::LaneEdge;
using ebb::Plan;
using ebb::PlanInterval;
using ebb::PlanOptions;
using ebb::test::fault_of;

namespace {

std::mt19937_64 seeded() {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  return std::mt19937_64(seed);
}

}  // namespace

TEST_CASE("plan: the height of small programs is the least there is, and proven") {
  std::mt19937_64 random = seeded();
  int above_bound = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<PlanInterval> intervals = ebb::test::small_program(random);
    const std::uint64_t least = ebb::test::BruteForce(intervals).least_height();
    const Plan plan = ebb::plan(intervals, Align{1});
    REQUIRE(fault_of(intervals, plan) == "");
    REQUIRE(plan.height.count() == least);
    REQUIRE(plan.exact);
    PlanOptions options;
    options.capacity = Bytes{least};
    const Plan fitting = ebb::plan(intervals, Align{1}, options);
    REQUIRE_FALSE(fitting.shortfall.has_value());
    REQUIRE(fault_of(intervals, fitting) == "");
    options.capacity = Bytes{least - 1};
    const Plan refused = ebb::plan(intervals, Align{1}, options);
    REQUIRE(refused.shortfall.has_value());
    REQUIRE(refused.shortfall->proven);
    above_bound += plan.height > plan.max_live ? 1 : 0;
  }
  CHECK(above_bound > 0);  // else the bound alone would have told the height
}

TEST_CASE("plan: programs that fit without a hole are packed without a hole") {
  std::mt19937_64 random = seeded();
  int searched = 0;
  int missed = 0;  // a rare one takes more steps than the default
  for (int round = 0; round < 20; ++round) {
    const std::vector<PlanInterval> intervals = ebb::test::perfect_intervals(random, 60);
    const Plan plan = ebb::plan(intervals, Align{1});
    REQUIRE(fault_of(intervals, plan) == "");
    CHECK(plan.max_live.count() == 1024);
    CHECK(plan.height.count() <= 1024 + 8);
    CHECK((plan.height.count() == 1024) != plan.cut_short);
    missed += plan.cut_short ? 1 : 0;
    searched += plan.nodes > 0 ? 1 : 0;
  }
  CHECK(searched > 0);
  CHECK(missed <= 2);
}

TEST_CASE("plan: larger programs are valid at every alignment and budget") {
  std::mt19937_64 random = seeded();
  for (int round = 0; round < 30; ++round) {
    const std::vector<PlanInterval> intervals =
        ebb::test::random_intervals(random, {1 + random() % 300, 1000, 5000});
    const std::size_t align = std::size_t{1} << (random() % 10);
    PlanOptions options;
    options.nodes = random() % 20000;
    const Plan plan = ebb::plan(intervals, Align{align}, options);
    REQUIRE(fault_of(intervals, plan, align) == "");
    CHECK(plan.nodes <= options.nodes);
    CHECK(plan.height >= plan.max_live);
  }
}

TEST_CASE("plan: the largest programs that are searched do not exhaust the stack") {
  std::mt19937_64 random = seeded();
  const std::vector<PlanInterval> intervals =
      ebb::test::random_intervals(random, {4000, 100000, 100000});
  PlanOptions options;
  options.nodes = 50000;
  const Plan plan = ebb::plan(intervals, Align{64}, options);
  CHECK(fault_of(intervals, plan, 64) == "");
  CHECK(plan.nodes > 0);
}

TEST_CASE("plan: no lane uses another's memory without an edge") {
  std::mt19937_64 random = seeded();
  int reused = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<PlanInterval> intervals =
        ebb::test::random_intervals(random, {1 + random() % 60, 100, 50, 4});
    PlanOptions options;
    for (std::uint64_t edge = random() % 12; edge > 0; --edge) {
      const std::uint64_t recorded = ebb::test::between(random, 0, 98);
      options.edges.push_back({static_cast<std::uint32_t>(random() % 4), recorded,
                               static_cast<std::uint32_t>(random() % 4),
                               ebb::test::between(random, recorded + 1, 100)});
    }
    const Plan plan = ebb::plan(intervals, Align{1}, options);
    REQUIRE(fault_of(intervals, plan, 1, options.edges) == "");
    // The judge sees what the edges were for.
    reused += fault_of(intervals, plan).empty() ? 0 : 1;
  }
  CHECK(reused > 0);
}

TEST_CASE("plan: the same budget gives the same plan") {
  std::mt19937_64 random = seeded();
  const std::vector<PlanInterval> intervals = ebb::test::perfect_intervals(random, 250);
  PlanOptions options;
  options.nodes = 300;
  const Plan first = ebb::plan(intervals, Align{1}, options);
  const Plan second = ebb::plan(intervals, Align{1}, options);
  CHECK(first.offsets == second.offsets);
  CHECK(first.nodes == second.nodes);
  CHECK(first.nodes > 0);
}

TEST_CASE("plan: cancelling gives the best plan so far, flagged") {
  std::mt19937_64 random(3);
  const std::vector<PlanInterval> intervals = ebb::test::perfect_intervals(random, 400);
  for (const int patience : {0, 1, 5, 12}) {
    int asked = 0;
    PlanOptions options;
    options.cancel = [&] { return asked++ >= patience; };
    const Plan plan = ebb::plan(intervals, Align{1}, options);
    CHECK(fault_of(intervals, plan) == "");
    CHECK(plan.cut_short);
    CHECK_FALSE(plan.exact);
    CHECK(asked > patience);
    CHECK(plan.nodes < options.nodes);
  }
}
