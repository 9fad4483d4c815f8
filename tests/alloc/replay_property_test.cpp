// SPDX-License-Identifier: Apache-2.0
// Whatever programs do, blocks overlap nothing, keep their content, and leave nothing behind; what
// repeats exactly is followed exactly. checks=full adds the heap's own proof. [alloc.replay]
#include "replay_program.h"
#include "support/sanitized.h"

#include <algorithm>
#include <cstdint>

using ebb::Bytes;
using ebb::test::displaced_in;
using ebb::test::ForeignFrees;
using ebb::test::NestedOptions;
using ebb::test::NestedProgram;
using ebb::test::NestedRunner;
using ebb::test::OwnHeap;
using ebb::test::plan_all;
using ebb::test::random_nested;

namespace {

void check_empty(OwnHeap& own) {
  own.heap.drain();
  CHECK(own.heap.stats().live == Bytes{0});
  own.heap.trim();
  CHECK(own.heap.stats().reserved == Bytes{0});
}

// Seeds for the usual stress.
template <class Run>
void for_each_seed(std::uint64_t seeds, Run run) {
  const std::uint64_t first = ebb::test::test_seed();
  const std::uint64_t slower = ebb::test::is_sanitized() ? 4 : 1;
  const std::uint64_t count =
      std::max<std::uint64_t>(ebb::test::stress(20'000) * seeds / 20'000 / slower, 2);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    run(seed);
  }
}

// Deviates by 0 now and then, so that plans are followed again.
void run_deviating(std::uint64_t seed, double share, bool out_of_order) {
  CAPTURE(share);
  std::mt19937_64 random(seed);
  NestedRunner::Sets sets;
  OwnHeap own;
  ForeignFrees others(seed);
  {
    NestedRunner runner(own.heap, sets, seed, &others);
    const NestedProgram program =
        random_nested(random, {.levels = 1 + random() % 3, .foreign = random() % 2 == 0});
    const NestedProgram other = random_nested(random, {.levels = 1 + random() % 3}, random() % 2);
    for (int i = 0; i < 30; ++i) {
      const bool exact = i < 3 || random() % 4 == 0;
      runner.run(random() % 6 == 0 ? other : program, exact ? 0 : share, out_of_order);
      if (random() % 4 != 0) {
        plan_all(sets);
      }
    }
    runner.free_kept();
  }
  CHECK(others.stop() == 0);
  check_empty(own);
}

}  // namespace

TEST_CASE("replay property: nested programs that repeat are followed without a displaced block") {
  for_each_seed(40, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    NestedRunner::Sets sets;
    OwnHeap own;
    {
      NestedRunner runner(own.heap, sets, seed, nullptr);
      const NestedProgram program = random_nested(random, {.levels = 1 + random() % 3});
      for (int i = 0; i < 30; ++i) {
        runner.run(program, 0);
        plan_all(sets);
      }
      const auto displaced = displaced_in(sets);
      const auto sources = own.heap.stats().source_calls;
      for (int i = 0; i < 5; ++i) {
        runner.run(program, 0);
      }
      CHECK(displaced_in(sets) == displaced);
      CHECK(own.heap.stats().source_calls == sources);
    }
    check_empty(own);
  });
}

TEST_CASE("replay property: nested programs that deviate keep every block whole") {
  for_each_seed(30, [](std::uint64_t seed) {
    for (const double share : {0.01, 0.05, 0.2, 0.7}) {
      run_deviating(seed, share, false);
    }
  });
}

TEST_CASE("replay property: iterations that end out of order keep every block whole") {
  for_each_seed(30, [](std::uint64_t seed) {
    for (const double share : {0.05, 0.2}) {
      run_deviating(seed, share, true);
    }
  });
}

TEST_CASE("replay property: two runners take turns on one heap") {
  for_each_seed(20, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    NestedRunner::Sets sets;
    NestedRunner::Sets others;
    OwnHeap own;
    {
      NestedRunner one(own.heap, sets, seed, nullptr);
      NestedRunner two(own.heap, others, seed + 1, nullptr);
      const NestedProgram first = random_nested(random, {.levels = 2});
      const NestedProgram second = random_nested(random, {.levels = 2});
      for (int i = 0; i < 60; ++i) {
        const bool exact = random() % 2 == 0;
        one.run(first, exact ? 0 : 0.05);
        two.run(second, exact ? 0 : 0.05);
        plan_all(sets);
        plan_all(others);
      }
      one.free_kept();
      two.free_kept();
    }
    check_empty(own);
  });
}
