// SPDX-License-Identifier: Apache-2.0
// Long iterations that leave their plan, or change to another: what they ask of the stack and of
// the processor does not grow with how many blocks have had an address. [alloc.replay]
#include "replay_fixture.h"

#include <chrono>
#include <cstddef>

using ebb::Block;
using ebb::test::Program;
using ebb::test::ReplayedHeap;

namespace {

constexpr std::size_t large = 9000;

// One block that lives long, then many that have the same address in turn, the last of another
// size.
Program chain(std::size_t count, std::size_t last) {
  Program program = {{large, 0}};
  for (std::size_t i = 1; i <= count; ++i) {
    program.insert(program.end(), {{i == count ? last : large, i}, {0, i}});
  }
  program.push_back({0, 0});
  return program;
}

double seconds_of(ReplayedHeap& replayed, const Program& program) {
  const auto start = std::chrono::steady_clock::now();
  replayed.run(program);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("replay effort: one takes over after many blocks that had one address in turn") {
  constexpr std::size_t many = 60'000;
  ReplayedHeap replayed;
  replayed.learn(chain(many, large));
  replayed.learn(chain(many, large + 64));
  replayed.run(chain(many, large));
  replayed.newly_displaced();
  replayed.run(chain(many, large + 64));
  replayed.run(chain(many, large));
  CHECK(replayed.newly_displaced() == 0);
}

TEST_CASE("replay effort: a block that is freed late keeps many from its address") {
  constexpr std::size_t many = 16'000;
  ReplayedHeap replayed;
  Program program;
  Program late = {{large, 0}};
  for (std::size_t i = 0; i <= many; ++i) {
    program.insert(program.end(), {{large, i}, {0, i}});
    if (i != 0) {
      late.insert(late.end(), {{large, i}, {0, i}});
    }
  }
  late.push_back({0, 0});
  replayed.learn(program);
  replayed.run(program);
  // Room elsewhere, so that the range stays solid.
  const Block room = replayed.own.take(4 * large);
  const Block pin = replayed.own.take(large);
  replayed.own.heap.deallocate(room);
  const double followed = seconds_of(replayed, program);
  CHECK(seconds_of(replayed, late) < 40 * followed);
  CHECK(replayed.plans.stats().deviated == 1);
  replayed.own.heap.deallocate(pin);
}
