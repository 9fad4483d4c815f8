// SPDX-License-Identifier: Apache-2.0
// Iterations that repeat get planned addresses, those that change get others. [alloc.replay]
#include "replay_fixture.h"
#include "support/malloc_interposer.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
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
  const auto first = replayed.addresses(small_program());
  const auto second = replayed.addresses(small_program());
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

TEST_CASE("replay: an iteration that ends early follows its plan as far as it goes") {
  ReplayedHeap replayed;
  std::mt19937_64 random(7);
  const Program program = ebb::test::random_program(random, 200, 20);
  replayed.learn(program);
  const auto planned = replayed.addresses(program);
  for (const std::size_t steps : {1U, 2U, 17U, 100U, 150U, 299U}) {
    CAPTURE(steps);
    const Program cut(program.begin(), program.begin() + static_cast<std::ptrdiff_t>(steps));
    CHECK(ebb::test::count_moved(planned, replayed.addresses(cut)) == 0);
    CHECK(ebb::test::count_moved(planned, replayed.addresses(program)) == 0);
  }
  CHECK(replayed.newly_displaced() == 0);
}

TEST_CASE("replay: what an exception leaves alive to the end is not taken for outliving") {
  ReplayedHeap replayed;
  replayed.learn(small_program());
  replayed.run({{1000, 0}});
  replayed.plans.work();
  CHECK(replayed.plans.plans()[0].outliving == 0);
}

TEST_CASE("replay: what comes after a plan's end is displaced, and planned when it comes again") {
  ReplayedHeap replayed;
  replayed.learn(small_program());
  Program longer = small_program();
  for (std::size_t number = 10; number < 15; ++number) {
    longer.push_back({2000 * number, number});
  }
  const auto planned = replayed.addresses(small_program());
  CHECK(ebb::test::count_moved(planned, replayed.addresses(longer)) == 0);
  CHECK(replayed.newly_displaced() == 5);
  replayed.run(longer);
  CHECK(replayed.newly_displaced() == 5);
  replayed.plans.work();
  CHECK(replayed.plans.plans().size() == 2);
  for (int i = 0; i < 3; ++i) {
    replayed.run(longer);
    replayed.run(small_program());
  }
  CHECK(replayed.newly_displaced() == 0);
}

TEST_CASE("replay: blocks that outlive an iteration are learned, and placed outside the plan") {
  ReplayedHeap replayed;
  replayed.learn(small_program());
  Program keeping = small_program();
  std::erase_if(keeping, [](const auto& step) { return step.bytes == 0 && step.number == 2; });
  replayed.run(keeping);
  CHECK(replayed.plans.has_work());
  replayed.plans.work();
  REQUIRE(replayed.plans.plans().size() == 1);
  CHECK(replayed.plans.plans()[0].outliving == 1);
  const Bytes height = replayed.plans.plans()[0].height;
  CHECK(height == Bytes{1024 + 70'016});
  Block kept;
  const auto keep_third = [&](std::size_t number, const Block& block) {
    kept = number == 2 ? block : kept;
  };
  replayed.run(keeping, {"program", 1}, keep_third);
  const auto planned = replayed.addresses(keeping);
  for (int i = 0; i < 3; ++i) {
    const auto now = replayed.addresses(keeping);
    auto moved = ebb::test::count_moved(planned, now);
    moved -= planned.at(2) != now.at(2) ? 1 : 0;
    CHECK(moved == 0);
  }
  const auto* begin = static_cast<std::byte*>(planned.at(0));
  for (const auto& [number, data] : planned) {
    begin = number != 2 ? std::min(begin, static_cast<const std::byte*>(data)) : begin;
  }
  const auto* outside = static_cast<const std::byte*>(planned.at(2));
  CHECK((outside + 5000 <= begin || outside >= begin + height.count()));
  CHECK(replayed.plans.stats().displaced == 0);
}

TEST_CASE("replay: blocks of no bytes, of large alignment, and too large ones") {
  ReplayedHeap replayed;
  constexpr std::size_t refused = std::numeric_limits<std::size_t>::max();
  std::vector<void*> before;
  for (int i = 0; i < 8; ++i) {
    CAPTURE(i);
    std::vector<Block> blocks;
    replayed.replay.begin(replayed.plans);
    for (const std::size_t align : {64U, 4096U, 64U, 1U << 21, 16U, 64U}) {
      for (const std::size_t bytes : {0U, 1U, 64U, 5000U}) {
        const Block block = replayed.take(bytes, {"odd", 1}, ebb::Align{align});
        REQUIRE(block);
        CHECK(block.bytes == Bytes{bytes});
        CHECK(reinterpret_cast<std::uintptr_t>(block.data) % align == 0);
        ebb::test::fill(block, blocks.size());
        blocks.push_back(block);
        for (const std::size_t huge : {refused, refused / 2, std::size_t{1} << 46}) {
          CHECK_FALSE(replayed.take(huge, {"odd", 1}));
          CHECK_FALSE(replayed.take(huge, {}));
        }
      }
    }
    for (std::size_t n = 0; n < blocks.size(); ++n) {
      CHECK(ebb::test::holds(blocks[n], n));
      replayed.own.heap.deallocate(blocks[n]);
    }
    replayed.replay.end();
    replayed.plans.work();
  }
  CHECK(replayed.own.heap.stats().live == Bytes{0});
}

TEST_CASE("replay: a request that no heap can meet is refused wherever the plan stands") {
  constexpr std::size_t refused = std::numeric_limits<std::size_t>::max();
  ReplayedHeap replayed;
  const auto iterate = [&](bool ask) {
    replayed.replay.begin(replayed.plans);
    const Block outliving = replayed.take(3000);
    CHECK_FALSE((ask && replayed.take(refused)));
    const Block aligned = replayed.take(3000, {"program", 1}, ebb::Align{4096});
    CHECK_FALSE((ask && replayed.take(refused)));
    replayed.own.heap.deallocate(aligned);
    CHECK_FALSE((ask && replayed.take(refused, {})));
    replayed.replay.end();
    replayed.own.heap.deallocate(outliving);
    replayed.plans.work();
  };
  for (int i = 0; i < 3; ++i) {
    iterate(false);
  }
  REQUIRE(replayed.plans.plans().size() == 1);
  iterate(true);
  // Where the place is what an outliving or an aligned entry has, and it is that entry's turn.
  replayed.replay.begin(replayed.plans);
  const Block first = replayed.take(3000);
  CHECK_FALSE(replayed.take(refused));
  replayed.own.heap.deallocate(first);
  replayed.replay.end();
}

TEST_CASE("replay: a pool that bypasses is neither recorded nor followed") {
  ReplayedHeap replayed({.bypass = true});
  for (int i = 0; i < 4; ++i) {
    replayed.run(small_program());
    CHECK_FALSE(replayed.plans.has_work());
  }
  CHECK(replayed.plans.stats().iterations == 0);
  CHECK(replayed.own.heap.stats().live == Bytes{0});
}

TEST_CASE("replay: a followed iteration makes no heap call, and in the end no source call") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 5; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    ReplayedHeap replayed;
    const Program program = ebb::test::random_program(random, 300, 20);
    replayed.learn(program);
    replayed.run(program);
    replayed.run(program);
    std::vector<Block> blocks(300);
    const auto sources = replayed.own.heap.stats().source_calls;
    const auto calls = ebb::test::heap_calls_of_this_thread().allocations;
    replayed.replay.begin(replayed.plans);
    for (const auto& step : program) {
      if (step.bytes != 0) {
        blocks[step.number] = replayed.take(step.bytes);
      } else {
        replayed.own.heap.deallocate(blocks[step.number]);
      }
    }
    replayed.replay.end();
    // The shadow map of checks=full makes some.
    if (ebb::test::heap_calls_counted() && EBB_CHECKS < 2) {
      CHECK(ebb::test::heap_calls_of_this_thread().allocations == calls);
    }
    CHECK(replayed.own.heap.stats().source_calls == sources);
    CHECK(replayed.newly_displaced() == 0);
  }
}

TEST_CASE("replay: a wait that has no patience, or is cancelled, leaves the work to be done") {
  ReplayedHeap replayed;
  replayed.run(small_program());
  replayed.run(small_program());
  CHECK_FALSE(replayed.plans.wait(std::chrono::milliseconds(0)));
  CHECK(replayed.plans.has_work());
  replayed.plans.work([] { return true; });
  CHECK(replayed.plans.has_work());
  int asked = 0;
  replayed.plans.work([&asked] { return asked++ != 0; });  // in the middle of it
  CHECK(replayed.plans.has_work());
  CHECK(replayed.plans.plans().empty());
  CHECK(replayed.plans.wait(std::chrono::minutes(1)));
  CHECK(replayed.plans.plans().size() == 1);
  CHECK_FALSE(replayed.plans.has_work());
}
