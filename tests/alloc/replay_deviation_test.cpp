// SPDX-License-Identifier: Apache-2.0
// An iteration that leaves its plan here and there: only the blocks that the change is about go
// elsewhere. [alloc.replay]
#include "replay_fixture.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::Addresses;
using ebb::test::count_moved;
using ebb::test::Program;
using ebb::test::ProgramStep;
using ebb::test::ReplayedHeap;

namespace {

constexpr std::size_t allocations = 150;

// A program that is planned, on a heap that has holes for what comes unexpected.
struct Planned {
  explicit Planned(std::uint64_t seed) : random(seed) {
    // Between blocks that live on, so that the holes stay.
    for (int i = 0; i < 8; ++i) {
      const Block hole = replayed.own.take(300'000);
      walls.push_back(replayed.own.take(5000));
      holes.push_back(hole);
    }
    replayed.learn(program);
    addresses = replayed.addresses(program);
    for (const Block& hole : holes) {
      replayed.own.heap.deallocate(hole);
    }
    REQUIRE(count_moved(addresses, replayed.addresses(program)) == 0);
    REQUIRE(replayed.newly_displaced() == 0);
  }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  Planned(Planned&&) = delete;
  Planned& operator=(Planned&&) = delete;
  ~Planned() {
    for (const Block& wall : walls) {
      replayed.own.heap.deallocate(wall);
    }
  }

  // The step that allocates a number, or frees it.
  static auto find(Program& in, std::size_t number, bool free) {
    return std::find_if(in.begin(), in.end(), [&](const ProgramStep& step) {
      return step.number == number && (step.bytes == 0) == free;
    });
  }
  // Runs a changed iteration, and finds as many blocks elsewhere as displaced, at least
  // as many counted as displaced.
  void run_changed(const Program& changed, std::size_t moved, std::uint64_t displaced) {
    const Addresses now = replayed.addresses(changed);
    CHECK(count_moved(addresses, now) == moved);
    CHECK(replayed.newly_displaced() == displaced);
    CHECK(count_moved(addresses, replayed.addresses(program)) == 0);
    CHECK(replayed.newly_displaced() == 0);
  }

  // No two sizes alike, lest a block be taken for another one.
  static Program distinct(Program program) {
    std::set<std::size_t> sizes;
    for (ProgramStep& step : program) {
      while (step.bytes != 0 && !sizes.insert(step.bytes).second) {
        ++step.bytes;
      }
    }
    return program;
  }

  std::mt19937_64 random;
  Program program = distinct(ebb::test::random_program(random, allocations, 15));
  ReplayedHeap replayed;
  std::vector<Block> walls;
  std::vector<Block> holes;
  Addresses addresses;
};

template <class Change>
void for_each_seed(Change change) {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 20; ++seed) {
    CAPTURE(seed);
    Planned planned(seed);
    for (int i = 0; i < 6; ++i) {
      const std::size_t number = 1 + planned.random() % (allocations - 2);
      CAPTURE(number);
      change(planned, number);
    }
  }
}

}  // namespace

TEST_CASE("replay deviation: one more block leaves all others where they were planned") {
  for_each_seed([](Planned& planned, std::size_t number) {
    Program changed = planned.program;
    const auto at = changed.insert(Planned::find(changed, number, false),
                                   {1 + planned.random() % 100'000, 1000, 7});
    changed.insert(
        at + 1 + static_cast<std::ptrdiff_t>(planned.random() % 20) % (changed.end() - at),
        {0, 1000});
    planned.run_changed(changed, 0, 1);
  });
}

TEST_CASE("replay deviation: a block left out leaves all others where they were planned") {
  for_each_seed([](Planned& planned, std::size_t number) {
    Program changed = planned.program;
    std::erase_if(changed, [&](const ProgramStep& step) { return step.number == number; });
    planned.run_changed(changed, 0, 0);
  });
}

TEST_CASE("replay deviation: several left out running leave all others where they were planned") {
  for_each_seed([](Planned& planned, std::size_t number) {
    Program changed = planned.program;
    std::erase_if(changed, [&](const ProgramStep& step) {
      return step.number >= number && step.number < number + 20;
    });
    planned.run_changed(changed, 0, 0);
  });
}

TEST_CASE("replay deviation: a larger block goes elsewhere, a smaller one has its place") {
  for_each_seed([](Planned& planned, std::size_t number) {
    Program changed = planned.program;
    const auto step = Planned::find(changed, number, false);
    const std::size_t before = step->bytes;
    const std::size_t larger = before + 64 + planned.random() % 1000;
    const std::size_t smaller = std::max<std::size_t>(before - before / 4, 1);
    if (std::any_of(changed.begin(), changed.end(), [&](const ProgramStep& other) {
          return other.bytes == smaller || other.bytes == larger || before < 256;
        })) {
      return;  // it would pass for that one
    }
    step->bytes = larger;
    planned.run_changed(changed, 1, 1);
    step->bytes = smaller;
    planned.run_changed(changed, 0, 0);
  });
}

TEST_CASE("replay deviation: a block freed late displaces those that come into its place") {
  for_each_seed([](Planned& planned, std::size_t number) {
    Program changed = planned.program;
    const std::size_t bytes = Planned::find(changed, number, false)->bytes;
    const auto free = Planned::find(changed, number, true);
    const auto steps = std::min<std::ptrdiff_t>(changed.end() - free, 60);
    std::rotate(free, free + 1, free + steps);
    const auto* begin = static_cast<std::byte*>(planned.addresses.at(number));
    std::vector<std::size_t> must;
    std::vector<std::size_t> may;
    for (auto step = free; step < free + steps - 1; ++step) {
      if (step->bytes != 0) {
        const auto* other = static_cast<std::byte*>(planned.addresses.at(step->number));
        (begin < other + step->bytes && other < begin + bytes ? must : may).push_back(step->number);
      }
    }
    const Addresses now = planned.replayed.addresses(changed);
    const std::size_t moved = count_moved(planned.addresses, now);
    CHECK(planned.replayed.newly_displaced() == moved);
    CHECK(moved >= must.size());
    std::size_t found = 0;
    for (const std::size_t other : must) {
      CHECK(now.at(other) != planned.addresses.at(other));
    }
    for (const std::size_t other : may) {
      found += now.at(other) != planned.addresses.at(other) ? 1 : 0;
    }
    CHECK(moved == must.size() + found);  // none before, and none after it was freed
    CHECK(count_moved(planned.addresses, planned.replayed.addresses(planned.program)) == 0);
    CHECK(planned.replayed.newly_displaced() == 0);
  });
}

TEST_CASE("replay deviation: a block kept over iterations is respected by those that follow") {
  for_each_seed([](Planned& planned, std::size_t number) {
    ReplayedHeap& replayed = planned.replayed;
    std::vector<Block> kept;
    replayed.replay.begin(replayed.plans);
    std::vector<Block> blocks(allocations);
    for (const ProgramStep& step : planned.program) {
      if (step.bytes != 0) {
        blocks[step.number] = replayed.take(step.bytes);
        ebb::test::fill(blocks[step.number], step.number);
      } else if (step.number % 20 != number % 20) {
        replayed.own.heap.deallocate(blocks[step.number]);
      } else {
        kept.push_back(blocks[step.number]);
      }
    }
    replayed.replay.end();
    for (int i = 0; i < 3; ++i) {
      replayed.run(planned.program);
    }
    for (const ProgramStep& step : planned.program) {
      if (step.bytes == 0 && step.number % 20 == number % 20) {
        CHECK(ebb::test::holds(blocks[step.number], step.number));
        replayed.own.heap.deallocate(blocks[step.number]);
      }
    }
  });
}
