// SPDX-License-Identifier: Apache-2.0
// Plans of random programs, judged by validate() and by a brute-force optimum. [alloc.plan]
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

// The least height: of all orders, with each buffer as low as it goes. Some order of the buffers of
// a best plan, by their offsets, gives a plan that is no higher.
class BruteForce {
 public:
  explicit BruteForce(const std::vector<PlanInterval>& intervals) : intervals_(intervals) {}

  std::uint64_t least_height() {
    extend(0);
    return least_;
  }

 private:
  void extend(std::uint64_t height) {
    if (height >= least_) {
      return;
    }
    if (order_.size() == intervals_.size()) {
      least_ = height;
      return;
    }
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      if (std::find(order_.begin(), order_.end(), i) == order_.end()) {
        const std::uint64_t offset = lowest_offset(i);
        order_.push_back(i);
        offsets_.push_back(offset);
        extend(std::max(height, offset + intervals_[i].size.count()));
        order_.pop_back();
        offsets_.pop_back();
      }
    }
  }

  std::uint64_t lowest_offset(std::size_t i) const {
    const PlanInterval& mine = intervals_[i];
    std::uint64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t j = 0; j < order_.size(); ++j) {
        const PlanInterval& other = intervals_[order_[j]];
        const std::uint64_t end = offsets_[j] + other.size.count();
        if (mine.lower < other.upper && other.lower < mine.upper && offset < end &&
            offsets_[j] < offset + mine.size.count()) {
          offset = end;
          moved = true;
        }
      }
    }
    return offset;
  }

  const std::vector<PlanInterval>& intervals_;
  std::vector<std::size_t> order_;
  std::vector<std::uint64_t> offsets_;  // in that order
  std::uint64_t least_ = ~std::uint64_t{0};
};

// Random ones hardly ever need more than their bound, so every other one is like one that does.
std::vector<PlanInterval> small_program(std::mt19937_64& random) {
  if (random() % 2 == 0) {
    return ebb::test::random_intervals(random, {1 + random() % 7, 6, 5});
  }
  std::vector<PlanInterval> intervals = ebb::test::above_its_bound();
  for (std::uint64_t changes = random() % 3; changes > 0; --changes) {
    PlanInterval& changed = intervals[random() % intervals.size()];
    changed.size = Bytes{ebb::test::between(random, 1, 4)};
    changed.upper = ebb::test::between(random, changed.lower + 1, 9);
  }
  return intervals;
}

std::mt19937_64 seeded() {
  const std::uint64_t seed = ebb::test::plan_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  return std::mt19937_64(seed);
}

}  // namespace

TEST_CASE("plan: the height of small programs is the least there is, and proven") {
  std::mt19937_64 random = seeded();
  int above_bound = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<PlanInterval> intervals = small_program(random);
    const std::uint64_t least = BruteForce(intervals).least_height();
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
  for (int round = 0; round < 20; ++round) {
    const std::vector<PlanInterval> intervals = ebb::test::perfect_intervals(random, 60);
    const Plan plan = ebb::plan(intervals, Align{1});
    REQUIRE(fault_of(intervals, plan) == "");
    CHECK(plan.max_live.count() == 1024);
    CHECK(plan.height.count() == 1024);
    searched += plan.nodes > 0 ? 1 : 0;
  }
  CHECK(searched > 0);
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
