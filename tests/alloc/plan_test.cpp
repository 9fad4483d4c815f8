// SPDX-License-Identifier: Apache-2.0
// What plan() promises of single cases. [alloc.plan]
#include "plan_fixture.h"

#include <ebb/alloc/plan.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using ebb::Align;
using ebb::Bytes;
using ebb::LaneEdge;
using ebb::Plan;
using ebb::PlanInterval;
using ebb::PlanOptions;
using ebb::test::fault_of;

namespace {

std::string refusal(const std::vector<PlanInterval>& intervals, std::size_t align = 1,
                    const PlanOptions& options = {}) {
  try {
    ebb::plan(intervals, Align{align}, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE("plan: nothing needs nothing") {
  const Plan plan = ebb::plan({}, Align{64});
  CHECK(plan.offsets.empty());
  CHECK(plan.height.count() == 0);
  CHECK(plan.exact);
  CHECK(plan.gap() == 0.0);
  CHECK(fault_of({}, plan) == "");
}

TEST_CASE("plan: what ends where another begins shares its memory") {
  const std::vector<PlanInterval> intervals{{7, 0, 5, Bytes{10}, 0}, {3, 5, 9, Bytes{10}, 0}};
  const Plan plan = ebb::plan(intervals, Align{1});
  CHECK(plan.height.count() == 10);
  CHECK(plan.exact);
  CHECK_FALSE(plan.cut_short);
}

TEST_CASE("plan: sizes are rounded to the alignment in the plan and in the bound") {
  const std::vector<PlanInterval> intervals{{0, 0, 5, Bytes{1}, 0}, {1, 0, 5, Bytes{65}, 0}};
  const Plan plan = ebb::plan(intervals, Align{64});
  CHECK(plan.height.count() == 192);
  CHECK(plan.max_live.count() == 192);
  CHECK(fault_of(intervals, plan, 64) == "");
}

TEST_CASE("plan: what cannot be planned is refused, by name") {
  CHECK(refusal({{4, 0, 1, Bytes{0}, 0}}) == "[plan] interval 4 has a size of 0");
  CHECK(refusal({{4, 3, 3, Bytes{1}, 0}}) == "[plan] interval 4 does not end after it begins");
  CHECK(refusal({{4, 3, 2, Bytes{1}, 0}}) == "[plan] interval 4 does not end after it begins");
  CHECK(refusal({{4, 0, 1, Bytes{1}, 0}, {4, 2, 3, Bytes{1}, 0}}) ==
        "[plan] interval 4 comes twice");
  CHECK(refusal({{4, 0, 1, Bytes{huge}, 0}}).starts_with("[plan] interval 4 is larger"));
  CHECK(
      refusal({{4, 0, 1, Bytes{1}, 0}}, std::size_t{1} << 63U).starts_with("[plan] an alignment"));
  const Bytes half{std::size_t{1} << 62U};
  CHECK(refusal({{4, 0, 1, half, 0}, {5, 1, 2, half, 0}}).starts_with("[plan] interval 5 makes"));
  PlanOptions backwards;
  backwards.edges = {{0, 5, 1, 5}};
  CHECK(refusal({{4, 0, 1, Bytes{1}, 0}}, 1, backwards).starts_with("[plan] an edge"));
  std::vector<PlanInterval> lanes;
  for (std::uint32_t lane = 0; lane < 65; ++lane) {
    lanes.push_back({lane, 0, 1, Bytes{1}, lane});
  }
  CHECK(refusal(lanes) == "[plan] more than 64 lanes");
}

TEST_CASE("plan: moments and sizes may be as large as they go") {
  const Bytes large{(std::size_t{1} << 62U) - 64};
  const std::vector<PlanInterval> intervals{{huge, 0, huge - 1, large, 0},
                                            {0, huge - 1, huge, large, 0}};
  const Plan plan = ebb::plan(intervals, Align{64});
  CHECK(plan.height == large);
  CHECK(fault_of(intervals, plan, 64) == "");
}

TEST_CASE("plan: too much at one moment is explained") {
  const std::vector<PlanInterval> intervals{{10, 0, 4, Bytes{5}, 0},
                                            {11, 2, 6, Bytes{7}, 0},
                                            {12, 3, 4, Bytes{1}, 0},
                                            {13, 6, 9, Bytes{9}, 0}};
  PlanOptions options;
  options.capacity = Bytes{12};
  const Plan plan = ebb::plan(intervals, Align{1}, options);
  REQUIRE(plan.shortfall.has_value());
  CHECK(plan.shortfall->moment == 3);
  CHECK(plan.shortfall->ids == std::vector<std::uint64_t>{11, 10, 12});
  CHECK(plan.shortfall->live.count() == 13);
  CHECK(plan.shortfall->excess.count() == 1);
  CHECK(plan.shortfall->proven);
  CHECK(fault_of(intervals, plan) == "");
  options.capacity = Bytes{13};
  CHECK_FALSE(ebb::plan(intervals, Align{1}, options).shortfall.has_value());
}

TEST_CASE("plan: a capacity that only the shapes forbid is proven to be too small") {
  const std::vector<PlanInterval> intervals = ebb::test::above_its_bound();
  const Plan least = ebb::plan(intervals, Align{1});
  CHECK(least.exact);
  CHECK(least.height > least.max_live);
  PlanOptions options;
  options.capacity = least.height - Bytes{1};
  const Plan plan = ebb::plan(intervals, Align{1}, options);
  REQUIRE(plan.shortfall.has_value());
  CHECK(plan.shortfall->proven);
  CHECK_FALSE(plan.cut_short);
  CHECK(plan.shortfall->excess == plan.height - *options.capacity);
  // What is named lives at the moment that is named, and is all of it.
  std::size_t live = 0;
  for (const PlanInterval& interval : intervals) {
    live += interval.lower <= plan.shortfall->moment && plan.shortfall->moment < interval.upper;
  }
  CHECK(plan.shortfall->ids.size() == live);
  options.nodes = 0;
  const Plan greedy = ebb::plan(intervals, Align{1}, options);
  REQUIRE(greedy.shortfall.has_value());
  CHECK_FALSE(greedy.shortfall->proven);
  CHECK(greedy.cut_short);
}

TEST_CASE("plan: another lane gets memory only through an edge") {
  const std::vector<PlanInterval> intervals{{0, 0, 2, Bytes{8}, 5}, {1, 6, 8, Bytes{8}, 9}};
  const auto height = [&](std::vector<LaneEdge> edges) {
    PlanOptions options;
    options.edges = std::move(edges);
    const Plan plan = ebb::plan(intervals, Align{1}, options);
    CHECK(fault_of(intervals, plan, 1, options.edges) == "");
    return plan.height.count();
  };
  CHECK(height({}) == 16);
  CHECK(height({{5, 2, 9, 6}}) == 8);
  CHECK(height({{5, 1, 9, 6}}) == 16);                // recorded while the first still lives
  CHECK(height({{5, 2, 9, 7}}) == 16);                // waited for after the second began
  CHECK(height({{9, 2, 5, 6}}) == 16);                // the wrong way
  CHECK(height({{7, 4, 9, 5}, {5, 2, 7, 4}}) == 8);   // through a lane without buffers
  CHECK(height({{7, 3, 9, 5}, {5, 2, 7, 4}}) == 16);  // a chain that is broken in time
}

TEST_CASE("plan: within a lane memory is free at once, whatever other lanes do") {
  const std::vector<PlanInterval> intervals{
      {0, 0, 2, Bytes{8}, 0}, {1, 2, 4, Bytes{8}, 0}, {2, 0, 9, Bytes{8}, 1}};
  const Plan plan = ebb::plan(intervals, Align{1});
  CHECK(plan.height.count() == 16);
  CHECK(plan.exact);
}
