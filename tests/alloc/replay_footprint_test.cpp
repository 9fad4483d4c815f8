// SPDX-License-Identifier: Apache-2.0
// What a plan costs in memory when iterations deviate from it. [alloc.replay], DESIGN section 10
#include "replay_fixture.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

using ebb::Bytes;
using ebb::test::Program;
using ebb::test::ReplayedHeap;

namespace {

constexpr std::size_t largest = std::size_t{1} << 18;

// Of reserved memory at the end, over the plan's height.
struct Footprint {
  double once = 0;       // after one iteration that deviates
  double often = 0;      // after several, each of which deviates elsewhere
  double displaced = 0;  // of the blocks
};

// Returns the footprint of iterations that deviate from a program that is planned.
Footprint measure(std::uint64_t seed, double share) {
  std::mt19937_64 random(seed);
  Program program;
  std::unique_ptr<ReplayedHeap> replayed;
  Bytes height;
  std::size_t alive = 20;
  while (height < Bytes{1 << 20}) {
    program = ebb::test::random_program(random, 300, alive += 10, largest);
    replayed = std::make_unique<ReplayedHeap>(ebb::PoolOptions{},
                                              // Searching for long would be most of the test.
                                              ebb::PlanSetOptions{.nodes = 1000});
    replayed->learn(program);
    height = replayed->plans.plans()[0].height;
  }
  replayed->run(program);
  ebb::test::Deviation deviation(random, largest);
  std::uint64_t blocks = 0;
  const auto displaced_before = replayed->plans.stats().displaced;
  const auto deviate = [&] {
    replayed->run(deviation.of(program, share), {"program", 1},
                  [&](std::size_t, const ebb::Block&) { ++blocks; });
    return static_cast<double>(replayed->own.heap.stats().reserved.count()) /
           static_cast<double>(height.count());
  };
  Footprint footprint;
  footprint.once = deviate();
  for (int i = 0; i < 4; ++i) {
    footprint.often = deviate();
  }
  footprint.displaced = static_cast<double>(replayed->plans.stats().displaced - displaced_before) /
                        static_cast<double>(blocks);
  return footprint;
}

Footprint mean(std::uint64_t first, double share) {
  const std::uint64_t seeds = std::clamp<std::uint64_t>(ebb::test::stress(20'000) / 500, 20, 100);
  Footprint sum;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Footprint one = measure(seed, share);
    sum.once += one.once / static_cast<double>(seeds);
    sum.often += one.often / static_cast<double>(seeds);
    sum.displaced += one.displaced / static_cast<double>(seeds);
  }
  MESSAGE(share, " deviations: reserved ", sum.once, " of the plan, after 5 iterations ", sum.often,
          ", displaced ", sum.displaced, " of the blocks");
  return sum;
}

}  // namespace

TEST_CASE("replay footprint: what deviations cost, over plans of more than 1 MiB") {
  struct Bound {
    double share;
    double once;
    double often;
  };
  for (const Bound& bound : {Bound{0, 1.01, 1.01}, Bound{0.01, 1.06, 1.20}, Bound{0.05, 1.20, 1.35},
                             Bound{0.2, 1.45, 1.60}}) {
    constexpr double slack = 0.03;  // means of fewer seeds than the design's 100 move by as much
    const std::uint64_t first = ebb::test::test_seed();
    CAPTURE(first);
    CAPTURE(bound.share);
    const Footprint found = mean(first, bound.share);
    CHECK(found.once <= bound.once + slack);
    CHECK(found.often <= bound.often);
  }
}
