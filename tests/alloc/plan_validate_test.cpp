// SPDX-License-Identifier: Apache-2.0
// The judge of plans finds every kind of fault. [alloc.plan]
#include "plan_fixture.h"

#include <ebb/alloc/plan.h>

#include <cstdint>
#include <vector>

using ebb::Bytes;
using ebb::Plan;
using ebb::PlanInterval;
using ebb::test::fault_of;

namespace {

const std::vector<PlanInterval> three{
    {0, 0, 4, Bytes{10}, 0}, {1, 2, 6, Bytes{20}, 0}, {2, 4, 8, Bytes{16}, 0}};

Plan good() {
  Plan plan;
  plan.offsets = {Bytes{32}, Bytes{0}, Bytes{32}};
  plan.height = Bytes{48};
  plan.max_live = Bytes{48};
  return plan;
}

}  // namespace

TEST_CASE("validate: a good plan has no fault") {
  CHECK(fault_of(three, good(), 16) == "");
}

TEST_CASE("validate: each kind of fault is told") {
  Plan plan = good();
  SUBCASE("an offset is missing") {
    plan.offsets.pop_back();
    CHECK(fault_of(three, plan, 16) == "2 offsets for 3 intervals");
  }
  SUBCASE("an offset is not aligned") {
    plan.offsets[2] = Bytes{40};
    CHECK(fault_of(three, plan, 16) == "interval 2 is not aligned");
  }
  SUBCASE("two overlap") {
    plan.offsets[2] = Bytes{16};
    CHECK(fault_of(three, plan, 16) == "interval 2 and interval 1 overlap in time and space");
  }
  SUBCASE("two overlap in what only rounding adds") {
    plan.offsets = {Bytes{0}, Bytes{16}, Bytes{40}};
    plan.height = Bytes{56};
    plan.max_live = Bytes{40};
    CHECK(fault_of(three, plan, 8) == "");
    std::vector<PlanInterval> longer = three;
    longer[1].size = Bytes{25};
    CHECK(fault_of(longer, plan, 8) == "interval 2 and interval 1 overlap in time and space");
  }
  SUBCASE("the end is beyond the last address") {
    plan.offsets[0] = Bytes{~std::size_t{15}};
    CHECK(fault_of(three, plan, 16) == "interval 0 leaves the address space");
  }
  SUBCASE("the height is another") {
    plan.height = Bytes{64};
    CHECK(fault_of(three, plan, 16) == "the height is 64, the highest buffer ends at 48");
  }
  SUBCASE("max_live is another") {
    plan.max_live = Bytes{47};
    CHECK(fault_of(three, plan, 16) == "max_live is 47, but 48 bytes live at one moment");
  }
}

TEST_CASE("validate: lanes share only what an edge hands over") {
  std::vector<PlanInterval> lanes = three;
  lanes[2].lane = 1;
  CHECK(fault_of(lanes, good(), 16) ==
        "interval 2 and interval 0 share addresses, and no edge leads from one's lane to the "
        "other's in time");
  CHECK(fault_of(lanes, good(), 16, {{0, 4, 1, 5}}) != "");
  lanes[2].lower = 5;
  Plan plan = good();
  CHECK(fault_of(lanes, plan, 16, {{0, 4, 1, 5}}) == "");
  CHECK(fault_of(lanes, plan, 16, {{0, 3, 1, 5}}) != "");
}
