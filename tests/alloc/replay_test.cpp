// SPDX-License-Identifier: Apache-2.0
// Iterations that repeat get planned addresses, those that change get others. [alloc.replay]
#include "replay_fixture.h"

#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::Program;
using ebb::test::ReplayedHeap;

namespace {

// Three blocks at most are alive at a time.
Program small_program() {
  return {{1000, 0}, {70'000, 1}, {5000, 2}, {0, 0}, {1000, 3},
          {0, 1},    {66'000, 4}, {0, 3},    {0, 2}, {0, 4}};
}

std::vector<void*> addresses(ReplayedHeap& replayed, const Program& program) {
  std::vector<void*> found;
  replayed.run(program, {"program", 1},
               [&](std::size_t, const Block& block) { found.push_back(block.data); });
  return found;
}

}  // namespace

TEST_CASE("replay: an iteration seen twice running is planned and followed") {
  ReplayedHeap replayed;
  replayed.run(small_program());
  CHECK_FALSE(replayed.plans.has_work());
  replayed.run(small_program());
  CHECK(replayed.plans.has_work());
  CHECK(replayed.plans.plans().empty());
  replayed.plans.work();
  REQUIRE(replayed.plans.plans().size() == 1);
  const ebb::PlanInfo plan = replayed.plans.plans()[0];
  CHECK(plan.buffers == 5);
  CHECK(plan.height == plan.max_live);
  CHECK(plan.height == Bytes{1024 + 70'016 + 5056});
  const auto first = addresses(replayed, small_program());
  const auto second = addresses(replayed, small_program());
  CHECK(first == second);
  CHECK(replayed.plans.stats().followed == 2);
  CHECK(replayed.plans.stats().displaced == 0);
}

TEST_CASE("replay: random programs repeat without a displaced block") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ReplayedHeap replayed;
    const Program program = ebb::test::random_program(random, 200, 20);
    replayed.learn(program);
    for (int i = 0; i < 5; ++i) {
      replayed.run(program);
    }
    CHECK(replayed.plans.stats().followed == 5);
    CHECK(replayed.plans.stats().displaced == 0);
  }
}

TEST_CASE(
    "replay: what no plan knows takes what the plan leaves free, before pages that went back") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  const Program program = {{mib, 0}, {mib, 1}, {0, 0}, {0, 1}};
  ReplayedHeap replayed;
  const Block low =
      replayed.own.take(mib * 7 / 4);  // leaves a hole that the plan does not fit into
  const Block pin = replayed.own.take(100'000);
  replayed.own.heap.deallocate(low);
  replayed.learn(program);
  replayed.run(program);
  const Bytes before = replayed.own.heap.stats().reserved;
  Program longer = program;
  longer.insert(longer.end(), {{mib * 3 / 2, 2}, {0, 2}});
  for (std::size_t i = 3; i < 60; ++i) {
    longer.insert(longer.end(), {{mib + i * 64, i}, {0, i}});
  }
  replayed.run(longer);
  CHECK(replayed.own.heap.stats().reserved == before);
  const std::uint64_t followed = replayed.plans.stats().followed;
  replayed.run(program);
  CHECK(replayed.plans.stats().followed == followed + 1);
  CHECK(replayed.own.heap.stats().reserved == before);
  replayed.own.heap.deallocate(pin);
}

TEST_CASE("replay: slabs that an iteration leaves empty do not keep its plan from the next") {
  const Program program = {{1'000'000, 0}, {1'000'000, 1}, {0, 0}, {0, 1}};
  ReplayedHeap replayed;
  replayed.learn(program);
  replayed.run(program);
  Program longer = program;
  for (std::size_t i = 2; i < 200; ++i) {
    longer.insert(longer.end(), {{16 * i, i}, {0, i}});
  }
  replayed.run(longer);
  const std::uint64_t followed = replayed.plans.stats().followed;
  replayed.run(program);
  CHECK(replayed.plans.stats().followed == followed + 1);
}

TEST_CASE("replay: deviations of every kind get other addresses, never memory in use") {
  for (const double share : {0.01, 0.05, 0.2, 0.9}) {
    for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 20; ++seed) {
      CAPTURE(seed);
      CAPTURE(share);
      std::mt19937_64 random(seed);
      ReplayedHeap replayed;
      const Program program = ebb::test::random_program(random, 200, 20);
      replayed.learn(program);
      for (int i = 0; i < 10; ++i) {
        replayed.run(ebb::test::deviate(random, program, share));
        replayed.plans.work();
      }
      const auto stats = replayed.plans.stats();
      MESSAGE(share, " displaced ", stats.displaced, " deviated ", stats.deviated, " followed ",
              stats.followed, " planned ", stats.planned, " reserved/height ",
              static_cast<double>(replayed.own.heap.stats().reserved.count()) /
                  static_cast<double>(replayed.plans.plans().back().height.count()));
    }
  }
}
