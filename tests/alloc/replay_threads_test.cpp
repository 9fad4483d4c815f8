// SPDX-License-Identifier: Apache-2.0
// Threads that iterate, plan, and free for each other. Run under ThreadSanitizer too.
// [alloc.replay]
#include "replay_program.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

using ebb::Bytes;
using ebb::test::ForeignFrees;
using ebb::test::NestedProgram;
using ebb::test::NestedRunner;
using ebb::test::OwnHeap;
using ebb::test::random_nested;

namespace {

// Plans for others until it is stopped, and gives half of its plans up on the way.
class Planner {
 public:
  explicit Planner(NestedRunner::Sets& sets) : thread_([this, &sets] { run(sets); }) {}
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;
  Planner(Planner&&) = delete;
  Planner& operator=(Planner&&) = delete;
  ~Planner() { done_ = true; }

 private:
  void run(NestedRunner::Sets& sets) {
    for (std::uint64_t round = 0; !done_; ++round) {
      for (ebb::PlanSet& set : sets) {
        if (set.has_work()) {
          set.work([&] { return round % 4 == 3; });
        }
        (void)set.stats();
        (void)set.plans();
      }
      std::this_thread::yield();
    }
  }

  std::atomic<bool> done_{false};
  std::jthread thread_;
};

void iterate(NestedRunner::Sets& sets, const NestedProgram& program, std::uint64_t seed,
             ForeignFrees& others, std::uint64_t rounds) {
  OwnHeap own;
  NestedRunner runner(own.heap, sets, seed, &others);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    runner.run(program, i % 3 == 0 ? 0.05 : 0);
  }
  runner.free_kept();
}

}  // namespace

TEST_CASE("replay threads: one iterates, one plans, one frees") {
  const std::uint64_t seed = ebb::test::test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 6; ++i) {
    NestedRunner::Sets sets;
    ForeignFrees others(seed);
    {
      const Planner planner(sets);
      iterate(sets, random_nested(random, {.levels = 2, .foreign = true}), seed, others,
              ebb::test::stress(20'000) / 300);
    }
    CHECK(others.stop() == 0);
    CHECK(sets[0].stats().iterations > 0);
  }
}

TEST_CASE("replay threads: two iterate side by side and share their plans") {
  const std::uint64_t seed = ebb::test::test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 4; ++i) {
    NestedRunner::Sets sets;
    ForeignFrees others(seed);
    const NestedProgram program = random_nested(random, {.levels = 2, .foreign = i % 2 == 0});
    {
      const Planner planner(sets);
      std::vector<std::jthread> threads;
      for (std::uint64_t thread = 0; thread < 2; ++thread) {
        threads.emplace_back([&, thread] {
          iterate(sets, program, seed + thread, others, ebb::test::stress(20'000) / 300);
        });
      }
    }
    CHECK(others.stop() == 0);
    OwnHeap own;
    NestedRunner runner(own.heap, sets, seed, nullptr);
    // As many as may be left alone for their irregularity, and those that it takes to plan.
    for (int round = 0; round < 100; ++round) {
      runner.run(program, 0);
      ebb::test::plan_all(sets);
    }
    CHECK(sets[0].stats().planned > 0);
  }
}

TEST_CASE("replay threads: waiting returns once all is planned") {
  std::mt19937_64 random(ebb::test::test_seed());
  NestedRunner::Sets sets;
  OwnHeap own;
  NestedRunner runner(own.heap, sets, 1, nullptr);
  const NestedProgram program = random_nested(random, {.levels = 1});
  runner.run(program, 0);
  runner.run(program, 0);
  REQUIRE(sets[0].has_work());
  std::jthread waits([&] { CHECK(sets[0].wait(std::chrono::minutes(1))); });
  CHECK(sets[0].wait(std::chrono::minutes(1)));
  CHECK(sets[0].plans().size() == 1);
}

// Of what the owner did to a block meanwhile its holder learns only when it frees it.
TEST_CASE("replay threads: a planned block is freed by another thread after its pool closed") {
  constexpr Bytes large{std::size_t{1} << 19};
  ebb::PlanSet plans;
  ebb::Replay replay;
  std::atomic<ebb::BlockRecord*> handed{nullptr};
  std::atomic<bool> closed{false};
  std::jthread holder([&] {
    while (handed.load(std::memory_order_acquire) == nullptr ||
           !closed.load(std::memory_order_relaxed)) {
      std::this_thread::yield();
    }
    ebb::BlockRecord& record = *handed.load(std::memory_order_relaxed);
    record.top->deallocate(record.block(record.data));
  });
  {
    OwnHeap own;
    for (int i = 0; i < 4; ++i) {
      replay.begin(plans);
      ebb::BlockRecord* const record =
          replay.take(own.heap, large, ebb::default_align_cpu, {}, {"program", 1});
      REQUIRE(record != nullptr);
      if (i < 3) {
        own.heap.deallocate(record->block(record->data));
      } else {
        handed.store(record, std::memory_order_release);
      }
      replay.end();
      plans.work();
    }
    CHECK(plans.stats().followed == 2);
  }
  closed.store(true, std::memory_order_relaxed);
}
