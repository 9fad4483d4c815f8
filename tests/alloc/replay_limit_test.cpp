// SPDX-License-Identifier: Apache-2.0
// A pool's limit while an iteration follows its plan: what the plan's range leaves free is had by
// those outside the plan too, before they are refused. [alloc.replay]
#include "replay_fixture.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

using ebb::Block;
using ebb::Bytes;
using ebb::test::Program;
using ebb::test::ReplayedHeap;

TEST_CASE("replay limit: what the plan leaves free is had outside of it before a refusal") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  const Program program = {{3 * mib, 0}, {0, 0}, {mib / 2, 1}, {mib / 2, 2}, {0, 1}, {0, 2}};
  ReplayedHeap replayed({.limit = Bytes{4 * mib}});
  replayed.learn(program);
  replayed.run(program);
  for (const std::size_t when : {std::size_t{1}, std::size_t{2}}) {
    CAPTURE(when);
    Block other;
    replayed.run(program, {"program", 1}, [&](std::size_t number, const Block&) {
      if (number == when) {
        other = replayed.own.heap.try_allocate(Bytes{2 * mib});
        CHECK(other);
        ebb::test::fill(other, 77);
      }
    });
    if (other) {
      CHECK(ebb::test::holds(other, 77));
      replayed.own.heap.deallocate(other);
    }
    replayed.run(program);
    replayed.newly_displaced();
    replayed.run(program);
    CHECK(replayed.newly_displaced() == 0);
  }
}

TEST_CASE("replay limit: a thread that waits for the limit gets what a higher plan keeps idle") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  ReplayedHeap replayed({.limit = Bytes{8 * mib}, .limit_wait = std::chrono::seconds(10)});
  const Program low = {{2 * mib, 0}, {0, 0}, {2 * mib, 1}, {0, 1}};
  replayed.learn({{7 * mib, 0, 1}, {0, 0}});
  replayed.learn(low);
  replayed.run(low);
  CHECK(replayed.own.heap.stats().reserved >= Bytes{7 * mib});
  std::atomic<bool> done{false};
  bool got = false;
  std::jthread other([&] {
    ebb::Heap& heap = replayed.own.pool.acquire();
    if (const Block block = heap.try_allocate(Bytes{2 * mib})) {
      got = true;
      heap.deallocate(block);
    }
    ebb::Pool::park(heap);
    done = true;
  });
  while (!done) {
    replayed.run(low);
  }
  other.join();
  CHECK(got);
  for (int i = 0; i < 100; ++i) {
    replayed.run(low);  // as planned again, after those that went without
  }
  replayed.newly_displaced();
  const std::uint64_t followed = replayed.plans.stats().followed;
  replayed.run(low);
  CHECK(replayed.newly_displaced() == 0);
  CHECK(replayed.plans.stats().followed == followed + 1);
}
