// SPDX-License-Identifier: Apache-2.0
// What the tests of plans share: seeds, random instances, and ones that are known to fit exactly.
#pragma once

#include "support/test_settings.h"

#include <ebb/alloc/plan.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ebb::test {

inline std::uint64_t between(std::mt19937_64& random, std::uint64_t least, std::uint64_t most) {
  return least + random() % (most - least + 1);
}

struct RandomIntervals {
  std::size_t count = 0;
  std::uint64_t last_moment = 0;
  std::uint64_t largest = 0;
  std::uint32_t lanes = 1;
};

inline std::vector<PlanInterval> random_intervals(std::mt19937_64& random,
                                                  const RandomIntervals& shape) {
  std::vector<PlanInterval> intervals;
  for (std::uint64_t id = 0; id < shape.count; ++id) {
    const std::uint64_t lower = between(random, 0, shape.last_moment - 1);
    intervals.push_back({id, lower, between(random, lower + 1, shape.last_moment),
                         Bytes{between(random, 1, shape.largest)},
                         static_cast<std::uint32_t>(random() % shape.lanes)});
  }
  return intervals;
}

// One of the few small programs whose least height, 9, is above the 8 bytes that are alive at most.
inline std::vector<PlanInterval> above_its_bound() {
  return {{0, 3, 4, Bytes{3}, 0}, {1, 7, 8, Bytes{3}, 0}, {2, 0, 1, Bytes{2}, 0},
          {3, 6, 8, Bytes{3}, 0}, {4, 4, 7, Bytes{2}, 0}, {5, 4, 6, Bytes{2}, 0},
          {6, 0, 5, Bytes{3}, 0}, {7, 0, 2, Bytes{2}, 0}, {8, 5, 7, Bytes{2}, 0}};
}

// Rectangles that fill the time from 0 to 4096 and 1024 bytes without a hole, shuffled: cut along
// either axis, or into a pinwheel, which no sequence of straight cuts gives.
inline std::vector<PlanInterval> perfect_intervals(std::mt19937_64& random, std::size_t count) {
  struct Rectangle {
    std::uint64_t left, right, bottom, top;
  };
  std::vector<Rectangle> all{{0, 4096, 0, 1024}};
  while (all.size() < count) {
    Rectangle& r = all[random() % all.size()];
    const std::uint64_t width = r.right - r.left;
    const std::uint64_t height = r.top - r.bottom;
    if (width < 4 || height < 4) {
      continue;
    }
    const std::uint64_t x1 = between(random, r.left + 1, r.right - 2);
    const std::uint64_t y1 = between(random, r.bottom + 1, r.top - 2);
    const std::uint64_t x2 = between(random, x1 + 1, r.right - 1);
    const std::uint64_t y2 = between(random, y1 + 1, r.top - 1);
    const Rectangle old = r;
    switch (random() % 3) {
      case 0:
        r.right = x1;
        all.push_back({x1, old.right, old.bottom, old.top});
        break;
      case 1:
        r.top = y1;
        all.push_back({old.left, old.right, y1, old.top});
        break;
      default:
        r = {old.left, x2, old.bottom, y1};
        all.push_back({x2, old.right, old.bottom, y2});
        all.push_back({x1, old.right, y2, old.top});
        all.push_back({old.left, x1, y1, old.top});
        all.push_back({x1, x2, y1, y2});
    }
  }
  std::shuffle(all.begin(), all.end(), random);
  std::vector<PlanInterval> intervals;
  for (const Rectangle& r : all) {
    intervals.push_back({intervals.size(), r.left, r.right, Bytes{r.top - r.bottom}, 0});
  }
  return intervals;
}

inline std::string fault_of(const std::vector<PlanInterval>& intervals, const Plan& plan,
                            std::size_t align = 1, const std::vector<LaneEdge>& edges = {}) {
  return validate(intervals, Align{align}, plan, edges).value_or("");
}

}  // namespace ebb::test
