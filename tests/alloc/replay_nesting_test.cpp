// SPDX-License-Identifier: Apache-2.0
// Iterations within iterations: an inner one is one block of the plan of the one around it.
// [alloc.replay] [gc.nest]
#include "replay_fixture.h"

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::Replay;
using ebb::test::Addresses;
using ebb::test::count_moved;
using ebb::test::OwnHeap;

namespace {

// Three sites, one within the other, on one heap. Blocks are known by name.
struct Nest {
  Block take(std::size_t depth, std::size_t name, std::size_t bytes) {
    ebb::BlockRecord* const record =
        replays[depth].take(own.heap, Bytes{bytes}, ebb::default_align_cpu, {},
                            {"nest", static_cast<std::uint32_t>(depth)});
    REQUIRE(record != nullptr);
    const Block block = record->block(record->data);
    ebb::test::fill(block, name);
    blocks[name] = block;
    addresses[name] = block.data;
    return block;
  }
  void free(std::size_t name) {
    CHECK(ebb::test::holds(blocks.at(name), name));
    own.heap.deallocate(blocks.at(name));
    blocks.erase(name);
  }
  void begin(std::size_t depth) { replays[depth].begin(sets[depth]); }
  void end(std::size_t depth) { replays[depth].end(); }
  void work() {
    for (ebb::PlanSet& set : sets) {
      set.work();
    }
  }
  std::uint64_t displaced() const {
    std::uint64_t sum = 0;
    for (const ebb::PlanSet& set : sets) {
      sum += set.stats().displaced;
    }
    return sum;
  }
  // Runs iterations until all are followed.
  void settle(const std::function<void()>& iterate) {
    for (int i = 0; i < 12; ++i) {
      iterate();
      work();
    }
    iterate();
  }
  // Nothing is left behind once all have ended.
  void check_empty() {
    CHECK(blocks.empty());
    CHECK(own.heap.stats().live == Bytes{0});
    own.heap.trim();
    CHECK(own.heap.stats().reserved == Bytes{0});
  }

  OwnHeap own;
  std::array<ebb::PlanSet, 3> sets;
  std::array<Replay, 3> replays;
  std::map<std::size_t, Block> blocks;
  Addresses addresses;
};

void run_inner(Nest& nest, std::size_t depth, std::size_t first, std::size_t bytes = 20'000) {
  nest.begin(depth);
  nest.take(depth, first, bytes);
  nest.take(depth, first + 1, 3000);
  nest.free(first);
  nest.take(depth, first + 2, bytes / 2);
  nest.free(first + 1);
  nest.free(first + 2);
  nest.end(depth);
}

// Two inner iterations, between blocks of the outer one.
void run_two(Nest& nest, std::size_t bytes = 20'000) {
  nest.begin(0);
  nest.take(0, 0, 50'000);
  run_inner(nest, 1, 100, bytes);
  nest.take(0, 1, 7000);
  nest.free(0);
  run_inner(nest, 1, 200, bytes);
  nest.free(1);
  nest.end(0);
}

void run_three(Nest& nest) {
  nest.begin(0);
  nest.take(0, 0, 50'000);
  for (std::size_t i = 1; i < 3; ++i) {
    nest.begin(1);
    nest.take(1, 10 * i, 9000);
    run_inner(nest, 2, 100 * i);
    nest.take(1, 10 * i + 1, 12'000);
    run_inner(nest, 2, 100 * i + 10);
    nest.free(10 * i);
    nest.free(10 * i + 1);
    nest.end(1);
  }
  nest.free(0);
  nest.end(0);
}

// Runs iterations until they are planned, and checks that more of them move and displace nothing.
// Returns where their blocks are.
template <class Iterate>
Addresses check_settles(Nest& nest, Iterate iterate) {
  nest.settle([&] { iterate(nest); });
  const Addresses planned = nest.addresses;
  const auto before = nest.displaced();
  for (int i = 0; i < 5; ++i) {
    iterate(nest);
    CHECK(count_moved(planned, nest.addresses) == 0);
  }
  CHECK(nest.displaced() == before);
  return planned;
}

}  // namespace

TEST_CASE("replay nesting: an inner iteration is one block of the plan around it") {
  Nest nest;
  const Addresses planned = check_settles(nest, [](Nest& it) { run_two(it); });
  REQUIRE(nest.sets[0].plans().size() >= 1);
  REQUIRE(nest.sets[1].plans().size() == 1);
  const ebb::PlanInfo outer = nest.sets[0].plans()[0];
  const ebb::PlanInfo inner = nest.sets[1].plans()[0];
  CHECK(outer.buffers == 4);
  CHECK(inner.height == Bytes{20'032 + 3008});
  CHECK(outer.max_live == Bytes{50'048 + 23'040});
  CHECK(outer.height == outer.max_live);
  CHECK(nest.own.heap.stats().reserved <= outer.max_live + Bytes{2 * 4096});
  const auto* lowest = static_cast<std::byte*>(planned.begin()->second);
  for (const auto& [name, data] : planned) {
    lowest = std::min(lowest, static_cast<const std::byte*>(data));
  }
  for (const auto& [name, data] : planned) {
    CHECK(static_cast<std::byte*>(data) < lowest + outer.height.count());
  }
  nest.check_empty();
}

TEST_CASE("replay nesting: three levels are followed") {
  Nest nest;
  check_settles(nest, [](Nest& it) { run_three(it); });
  CHECK(nest.own.heap.stats().reserved <= nest.sets[0].plans()[0].max_live + Bytes{2 * 4096});
  nest.check_empty();
}

TEST_CASE("replay nesting: recursion into the same site is not planned") {
  Nest nest;
  Replay recursive;
  const auto iterate = [&] {
    nest.begin(0);
    nest.take(0, 0, 50'000);
    recursive.begin(nest.sets[0]);
    ebb::BlockRecord* const record =
        recursive.take(nest.own.heap, Bytes{50'000}, ebb::default_align_cpu, {}, {"nest", 0});
    REQUIRE(record != nullptr);
    CHECK(record->data != nest.addresses[0]);
    nest.own.heap.give_block(*record);
    recursive.end();
    nest.free(0);
    nest.end(0);
  };
  nest.settle(iterate);
  CHECK(nest.sets[0].plans().size() == 1);
  CHECK(nest.sets[0].plans()[0].buffers == 1);
  CHECK(nest.displaced() == 0);
  nest.check_empty();
}

TEST_CASE("replay nesting: an inner iteration that needs more is planned anew on both levels") {
  Nest nest;
  nest.settle([&] { run_two(nest); });
  for (const std::size_t bytes : {40'000U, 10'000U, 100'000U, 64U}) {
    CAPTURE(bytes);
    nest.settle([&] { run_two(nest, bytes); });
    const auto before = nest.displaced();
    run_two(nest, bytes);
    CHECK(nest.displaced() == before);
  }
  nest.check_empty();
}

TEST_CASE("replay nesting: within an iteration that has no plan an inner one follows its own") {
  Nest nest;
  std::mt19937_64 random(ebb::test::test_seed());
  for (int i = 0; i < 40; ++i) {
    nest.begin(0);
    nest.take(0, 0, 1 + random() % 100'000);
    run_inner(nest, 1, 100);
    nest.take(0, 1, 1 + random() % 100'000);
    run_inner(nest, 1, 200);
    nest.free(0);
    nest.free(1);
    nest.end(0);
    nest.work();
  }
  CHECK(nest.sets[0].stats().planned == 0);
  // While the outer ones are left alone, the inner range is the heap's own, and may be in the way.
  CHECK(nest.sets[1].stats().followed > 40);
  nest.check_empty();
}

TEST_CASE("replay nesting: the outer range comes loose while an inner one is followed in it") {
  for (std::size_t wanted = 1 << 16; wanted < (4 << 20); wanted *= 2) {
    CAPTURE(wanted);
    Nest nest;
    nest.settle([&] { run_three(nest); });
    nest.begin(0);
    nest.take(0, 0, 50'000);
    nest.begin(1);
    nest.take(1, 10, 9000);
    nest.begin(2);
    nest.take(2, 100, 20'000);
    // No hole is that large: the innermost range comes loose, and with it those around it.
    nest.take(2, 500, wanted);
    nest.take(2, 101, 3000);
    nest.take(1, 501, wanted);
    nest.take(0, 502, wanted);
    nest.free(100);
    nest.take(2, 102, 10'000);
    nest.free(500);
    nest.free(101);
    nest.free(102);
    nest.end(2);
    nest.take(1, 11, 12'000);
    nest.free(501);
    nest.free(10);
    nest.free(11);
    nest.end(1);
    nest.free(502);
    nest.free(0);
    nest.end(0);
    nest.settle([&] { run_three(nest); });
    const auto before = nest.displaced();
    run_three(nest);
    CHECK(nest.displaced() == before);
    nest.check_empty();
  }
}

TEST_CASE("replay nesting: what an inner iteration leaves alive stays where it is") {
  Nest nest;
  nest.settle([&] { run_three(nest); });
  nest.begin(0);
  nest.take(0, 0, 50'000);
  nest.begin(1);
  nest.take(1, 10, 9000);
  nest.begin(2);
  nest.take(2, 100, 20'000);
  nest.take(2, 101, 3000);
  nest.end(2);
  nest.take(1, 11, 12'000);
  nest.end(1);
  nest.begin(1);
  nest.take(1, 20, 9000);
  run_inner(nest, 2, 200);
  nest.free(20);
  nest.end(1);
  nest.end(0);
  run_inner(nest, 2, 300);
  for (const std::size_t name : {101U, 11U, 0U, 100U, 10U}) {
    nest.free(name);
  }
  nest.check_empty();
}

TEST_CASE("replay nesting: ends in any order leave nothing behind") {
  const std::vector<std::array<std::size_t, 3>> orders{{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    for (const bool alive : {false, true}) {
      CAPTURE(order[0]);
      CAPTURE(order[1]);
      CAPTURE(order[2]);
      CAPTURE(alive);
      Nest nest;
      nest.settle([&] { run_three(nest); });
      for (int i = 0; i < 3; ++i) {
        for (std::size_t depth = 0; depth < 3; ++depth) {
          nest.begin(depth);
          nest.take(depth, depth, depth == 0 ? 50'000 : depth == 1 ? 9000 : 20'000);
        }
        for (const std::size_t depth : order) {
          if (!alive) {
            nest.free(depth);
          }
          nest.end(depth);
          // Another one begins while some are open that lost what was around them.
          if (depth != 2 && depth == order[0]) {
            nest.begin(depth);
            nest.take(depth, 50, 30'000);
            nest.free(50);
            nest.end(depth);
          }
        }
        if (alive) {
          for (std::size_t depth = 0; depth < 3; ++depth) {
            nest.free(depth);
          }
        }
        CHECK(nest.own.heap.stats().live == Bytes{0});
      }
      nest.check_empty();
    }
  }
}

TEST_CASE("replay nesting: an outer iteration that allocates first after the inner one") {
  Nest nest;
  const auto iterate = [&] {
    nest.begin(0);
    run_inner(nest, 1, 100);
    nest.begin(1);
    nest.take(1, 200, 20'000);
    nest.take(0, 0, 5000);
    nest.take(0, 1, 70'000);
    nest.free(200);
    nest.end(1);
    nest.take(0, 2, 9000);
    nest.free(0);
    nest.free(1);
    nest.free(2);
    nest.end(0);
  };
  for (int i = 0; i < 20; ++i) {
    iterate();
    nest.work();
  }
  nest.check_empty();
}
