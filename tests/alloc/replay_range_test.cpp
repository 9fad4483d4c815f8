// SPDX-License-Identifier: Apache-2.0
// The range that a heap sets aside for its plans: under a limit, trimmed, with long-lived blocks in
// its way. [alloc.replay]
#include "replay_fixture.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::count_moved;
using ebb::test::Program;
using ebb::test::random_program;
using ebb::test::ReplayedHeap;

namespace {

std::size_t in_mib(Bytes bytes) {
  return bytes.count() >> 20;
}

// A heap that follows the plan of a random program, and where its blocks are.
struct Learned {
  explicit Learned(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    program = random_program(random, 100, 10);
    replayed.learn(program);
    planned = replayed.addresses(program);
  }

  ReplayedHeap replayed;
  Program program;
  ebb::test::Addresses planned;
};

}  // namespace

TEST_CASE("replay range: idle pages go back between iterations, and the plan is followed after") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 10; ++seed) {
    CAPTURE(seed);
    Learned learned(seed);
    auto& [replayed, program, planned] = learned;
    for (int i = 0; i < 3; ++i) {
      CHECK(replayed.own.heap.trim() > Bytes{0});
      CHECK(replayed.own.heap.stats().reserved == Bytes{0});
      CHECK(count_moved(planned, replayed.addresses(program)) == 0);
    }
    CHECK(replayed.newly_displaced() == 0);
    CHECK(replayed.own.heap.stats().reserved <= replayed.plans.plans()[0].height + Bytes{2 * 4096});
  }
}

TEST_CASE("replay range: trimming within an iteration leaves its range alone") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 10; ++seed) {
    CAPTURE(seed);
    Learned learned(seed);
    ReplayedHeap& replayed = learned.replayed;
    ebb::test::Addresses now;
    replayed.run(learned.program, {"program", 1}, [&](std::size_t number, const Block& block) {
      now[number] = block.data;
      if (number % 10 == 3) {
        replayed.own.heap.trim();
      }
    });
    CHECK(count_moved(learned.planned, now) == 0);
    CHECK(replayed.newly_displaced() == 0);
  }
}

TEST_CASE("replay range: a plan as high as the pool's limit is followed") {
  std::mt19937_64 random(11);
  const Program program = random_program(random, 100, 10);
  ReplayedHeap free;
  free.learn(program);
  const Bytes height = free.plans.plans()[0].height;
  const Bytes limit{(height.count() * 3 / 2) & ~std::size_t{4095}};
  ReplayedHeap replayed({.limit = limit});
  replayed.learn(program);
  for (int i = 0; i < 5; ++i) {
    replayed.run(program);
  }
  CHECK(replayed.plans.stats().displaced == 0);
  CHECK(replayed.own.heap.stats().reserved <= limit);
}

TEST_CASE("replay range: under a limit a request is refused, and the iteration goes on") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 10; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Program program = random_program(random, 100, 10);
    ReplayedHeap replayed({.limit = Bytes{4 << 20}});
    replayed.learn(program);
    const auto planned = replayed.addresses(program);
    for (const std::size_t when : {0U, 40U, 80U}) {
      std::size_t refused = 0;
      std::vector<Block> taken;
      replayed.run(program, {"program", 1}, [&](std::size_t number, const Block&) {
        if (number != when) {
          return;
        }
        for (const std::size_t bytes : {8U << 20, 2U << 20, 1U << 20}) {
          const Block block = replayed.take(bytes, {"greedy", 1});
          refused += block ? 0 : 1;
          if (block) {
            taken.push_back(block);
          }
        }
      });
      CHECK(refused > 0);
      for (const Block& block : taken) {
        replayed.own.heap.deallocate(block);
      }
      replayed.run(program);
      replayed.newly_displaced();
      CHECK(count_moved(planned, replayed.addresses(program)) == 0);
      CHECK(replayed.newly_displaced() == 0);
    }
  }
}

TEST_CASE("replay range: room that others need between iterations is theirs") {
  std::mt19937_64 random(5);
  const Program program = random_program(random, 100, 10);
  ReplayedHeap replayed({.limit = Bytes{4 << 20}});
  replayed.learn(program);
  replayed.run(program);
  const Block whole = replayed.own.heap.try_allocate(Bytes{(4 << 20) - (64 << 10)});
  REQUIRE(whole);
  replayed.own.heap.deallocate(whole);
  replayed.run(program);
  replayed.newly_displaced();
  replayed.run(program);
  CHECK(replayed.newly_displaced() == 0);
}

TEST_CASE("replay range: blocks that live on between iterations cost no footprint that grows") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 5; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ReplayedHeap replayed;
    const Program program = random_program(random, 100, 10);
    replayed.learn(program);
    const std::size_t height = replayed.plans.plans()[0].height.count();
    std::vector<Block> kept;
    std::size_t most = 0;
    for (int i = 0; i < 200; ++i) {
      replayed.run(program);
      replayed.plans.work();
      for (std::size_t n = random() % 3; n > 0; --n) {
        kept.push_back(replayed.own.take(1 + random() % 50'000));
        ebb::test::fill(kept.back(), 1);
      }
      while (kept.size() > 20) {
        std::swap(kept[random() % kept.size()], kept.back());
        CHECK(ebb::test::holds(kept.back(), 1));
        replayed.own.heap.deallocate(kept.back());
        kept.pop_back();
      }
      if (i % 20 == 19) {
        replayed.own.heap.trim();
      }
      most = std::max(most, replayed.own.heap.stats().reserved.count());
    }
    // 20 blocks of 25 kB on average, and as much again for holes among them.
    CHECK(most < 2 * height + (2 << 20));
    CAPTURE(replayed.plans.stats().displaced);
    CHECK(replayed.plans.stats().planned < 10);
    for (const Block& block : kept) {
      replayed.own.heap.deallocate(block);
    }
    for (int i = 0; i < 10; ++i) {
      replayed.run(program);  // the range has moved by then, if it had to
    }
    replayed.newly_displaced();
    replayed.run(program);
    CHECK(replayed.newly_displaced() == 0);
    replayed.own.heap.trim();
    CHECK(in_mib(replayed.own.heap.stats().reserved) == 0);
  }
}

TEST_CASE("replay range: a block in the way for good has the range moved, and nothing planned") {
  std::mt19937_64 random(17);
  ReplayedHeap replayed;
  const Program program = random_program(random, 100, 10);
  replayed.learn(program);
  const auto planned = replayed.addresses(program);
  const auto lowest = std::min_element(planned.begin(), planned.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
  replayed.own.heap.trim();
  const Block wall = replayed.own.heap.try_allocate_at(lowest->second, Bytes{100});
  REQUIRE(wall);
  for (int i = 0; i < 30; ++i) {
    replayed.run(program);
    replayed.plans.work();
  }
  replayed.newly_displaced();
  replayed.run(program);
  CHECK(replayed.newly_displaced() == 0);
  CHECK(replayed.plans.stats().planned <= 3);
  replayed.own.heap.deallocate(wall);
}

TEST_CASE("replay range: two sets that take turns on one heap share it") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 10; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ReplayedHeap replayed;
    ebb::PlanSet others;
    ebb::Replay other;
    const Program program = random_program(random, 100, 10);
    const Program second = random_program(random, 100, 20);
    const auto run_other = [&] {
      std::vector<Block> blocks(100);
      other.begin(others);
      for (const auto& step : second) {
        if (step.bytes != 0) {
          ebb::BlockRecord* const record = other.take(replayed.own.heap, Bytes{step.bytes},
                                                      ebb::default_align_cpu, {}, {"other", 1});
          REQUIRE(record != nullptr);
          blocks[step.number] = record->block(record->data);
        } else {
          replayed.own.heap.deallocate(blocks[step.number]);
        }
      }
      other.end();
    };
    for (int i = 0; i < 40; ++i) {
      replayed.run(program);
      run_other();
      replayed.plans.work();
      others.work();
    }
    const auto before = others.stats().displaced;
    replayed.newly_displaced();
    for (int i = 0; i < 10; ++i) {
      replayed.run(program);
      run_other();
    }
    CHECK(replayed.newly_displaced() == 0);
    CHECK(others.stats().displaced == before);
    const std::size_t higher =
        std::max(replayed.plans.plans()[0].height.count(), others.plans()[0].height.count());
    CHECK(replayed.own.heap.stats().reserved.count() < higher * 5 / 4 + 65'536);
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
