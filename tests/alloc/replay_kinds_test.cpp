// SPDX-License-Identifier: Apache-2.0
// Programs of several kinds of iterations, programs that change for good, and those that never
// repeat. [alloc.replay]
#include "replay_fixture.h"

#include <string>
#include <vector>

using ebb::Bytes;
using ebb::test::Program;
using ebb::test::random_program;
using ebb::test::ReplayedHeap;

namespace {

void run_all(ReplayedHeap& replayed, const std::vector<Program>& kinds, const std::string& order,
             bool plan) {
  for (const char kind : order) {
    replayed.run(kinds[static_cast<std::size_t>(kind - 'a')]);
    if (plan) {
      replayed.plans.work();
    }
  }
}

// The begin of one program with the allocations of another as its tail.
Program with_tail(const Program& program, const Program& tail) {
  Program longer = program;
  for (ebb::test::ProgramStep step : tail) {
    step.number += 1000;
    longer.push_back(step);
  }
  return longer;
}

}  // namespace

TEST_CASE("replay kinds: iterations that take turns each have a plan") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 10; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const std::vector<Program> kinds{random_program(random, 100, 10),
                                     random_program(random, 150, 20),
                                     random_program(random, 50, 5)};
    ReplayedHeap replayed;
    run_all(replayed, kinds, "aaabababcbcca", true);
    CHECK(replayed.plans.plans().size() == 3);
    replayed.newly_displaced();
    run_all(replayed, kinds, "aaababcabcabccba", true);
    CHECK(replayed.newly_displaced() == 0);
    CHECK(replayed.plans.stats().followed >= 16);
    CHECK_FALSE(replayed.plans.has_work());
  }
}

TEST_CASE("replay kinds: one that begins as another takes over without a displaced block") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 10; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Program begin = random_program(random, 100, 10);
    const std::vector<Program> kinds{begin, with_tail(begin, random_program(random, 40, 10)),
                                     with_tail(begin, random_program(random, 20, 5))};
    ReplayedHeap replayed;
    run_all(replayed, kinds, "aaabbbcccabc", true);
    CHECK(replayed.plans.plans().size() == 3);
    replayed.newly_displaced();
    run_all(replayed, kinds, "abcaabbccba", true);
    CHECK(replayed.newly_displaced() == 0);
  }
}

TEST_CASE("replay kinds: one that differs while blocks live overlaps nothing") {
  std::uint64_t displaced = 0;
  constexpr std::uint64_t seeds = 20;
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Program begin = random_program(random, 100, 10);
    std::vector<Program> kinds(3, begin);
    for (auto& step : kinds[1]) {
      step.bytes += step.bytes != 0 && step.number > 50 ? 64 + random() % 10'000 : 0;
    }
    for (auto& step : kinds[2]) {
      step.bytes += step.bytes != 0 && step.number > 75 ? 64 + random() % 10'000 : 0;
    }
    ReplayedHeap replayed;
    run_all(replayed, kinds, "aaabbbcccabcabcabccbacba", true);
    CHECK(replayed.plans.plans().size() == 3);
    const auto before = replayed.plans.stats().displaced;
    run_all(replayed, kinds, "abcabccbacba", true);
    displaced += replayed.plans.stats().displaced - before;
  }
  // 3 to 9 in an iteration on average; a single seed may have 27.
  CHECK(displaced < seeds * 12 * 15);
}

TEST_CASE("replay kinds: one that takes over does not count on deaths that did not come") {
  // Of the same first two allocations: one after the other in the first, side by side in the
  // second.
  const Program alone{{10'000, 0}, {0, 0}, {5000, 1}, {0, 1}, {5001, 2}, {0, 2}};
  const Program together{{10'000, 0}, {5000, 1}, {0, 1}, {0, 0}, {3000, 3}, {0, 3}};
  ReplayedHeap replayed;
  replayed.learn(alone);
  replayed.learn(together);
  replayed.run(together);  // begins on the first plan, and finds that it has one of its own
  const auto planned = replayed.addresses(together);
  REQUIRE(planned.at(0) == planned.at(3));
  REQUIRE(planned.at(0) < planned.at(1));
  replayed.newly_displaced();
  // Begins on the second, goes on as the first, and has its first block alive, in the way.
  replayed.run({{10'000, 0}, {5000, 1}, {0, 1}, {5001, 2}, {0, 0}, {0, 2}});
  CHECK(replayed.newly_displaced() == 1);
}

TEST_CASE("replay kinds: one that begins as another, but frees later, comes to its own plan") {
  const Program early{{10'000, 0}, {0, 0}, {5000, 1}, {0, 1}, {7000, 2}, {0, 2}};
  const Program late{{10'000, 0}, {5000, 1}, {0, 1}, {0, 0}, {3000, 3}, {0, 3}};
  ReplayedHeap replayed;
  replayed.learn(early);
  replayed.learn(late);
  replayed.run(late);
  replayed.newly_displaced();
  for (int i = 0; i < 3; ++i) {
    replayed.run(late);
  }
  CHECK(replayed.newly_displaced() == 0);
  CHECK(replayed.plans.plans().size() == 2);
}

TEST_CASE("replay kinds: a program that changes for good is planned anew at once") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 10; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ReplayedHeap replayed;
    for (int phase = 0; phase < 20; ++phase) {  // more than plans are kept
      CAPTURE(phase);
      const Program program = random_program(random, 100, 10);
      for (int i = 0; i < 3; ++i) {
        replayed.run(program);
        replayed.plans.work();
      }
      replayed.newly_displaced();
      const auto followed = replayed.plans.stats().followed;
      for (int i = 0; i < 5; ++i) {
        replayed.run(program);
      }
      CHECK(replayed.newly_displaced() == 0);
      CHECK(replayed.plans.stats().followed == followed + 5);
    }
    CHECK(replayed.plans.plans().size() <= 16);
  }
}

TEST_CASE("replay kinds: a program that never repeats is left alone, and costs no footprint") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 3; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::mt19937_64 same(seed);
    ReplayedHeap replayed;
    ReplayedHeap plain({.bypass = false});
    for (int i = 0; i < 300; ++i) {
      replayed.run(random_program(random, 60, 10));
      CHECK_FALSE(replayed.plans.has_work());
    }
    CHECK(replayed.plans.stats().planned == 0);
    CHECK(replayed.plans.stats().iterations == 300);
    for (int i = 0; i < 300; ++i) {
      std::map<std::size_t, ebb::Block> blocks;
      for (const auto& step : random_program(same, 60, 10)) {
        if (step.bytes != 0) {
          blocks[step.number] = plain.own.take(step.bytes);
        } else {
          plain.own.heap.deallocate(blocks[step.number]);
        }
      }
    }
    CHECK(replayed.own.heap.stats().reserved_peak == plain.own.heap.stats().reserved_peak);
  }
}

TEST_CASE("replay kinds: what is left alone for its irregularity is planned once it repeats") {
  std::mt19937_64 random(3);
  ReplayedHeap replayed;
  for (int i = 0; i < 300; ++i) {
    replayed.run(random_program(random, 60, 10));
  }
  const Program program = random_program(random, 60, 10);
  int iterations = 0;
  while (replayed.plans.stats().followed == 0 && iterations < 200) {
    replayed.run(program);
    replayed.plans.work();
    ++iterations;
  }
  CHECK(iterations < 80);
}
