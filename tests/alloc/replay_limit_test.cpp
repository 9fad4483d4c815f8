// SPDX-License-Identifier: Apache-2.0
// A pool's limit while an iteration follows its plan: what the plan's range leaves free is had by
// those outside the plan too, before they are refused. [alloc.replay]
#include "replay_fixture.h"

#include <cstddef>

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
