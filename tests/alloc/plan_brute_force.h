// SPDX-License-Identifier: Apache-2.0
// Small programs, and their least heights by trying everything. Used by the tests of plans.
#pragma once

#include "plan_fixture.h"

#include <ebb/alloc/plan.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace ebb::test {

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
inline std::vector<PlanInterval> small_program(std::mt19937_64& random) {
  if (random() % 2 == 0) {
    return random_intervals(random, {1 + random() % 7, 6, 5});
  }
  std::vector<PlanInterval> intervals = above_its_bound();
  for (std::uint64_t changes = random() % 3; changes > 0; --changes) {
    PlanInterval& changed = intervals[random() % intervals.size()];
    changed.size = Bytes{between(random, 1, 4)};
    changed.upper = between(random, changed.lower + 1, 9);
  }
  return intervals;
}

}  // namespace ebb::test
