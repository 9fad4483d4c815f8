// SPDX-License-Identifier: Apache-2.0
// The counting adaptor's figures, over all and in nested sections. [alloc.adaptor]
#include "heap_fixture.h"

#include <ebb/alloc/fault.h>
#include <ebb/alloc/stats_adaptor.h>

#include <stdexcept>
#include <thread>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::Stats;
using ebb::test::OwnHeap;

TEST_CASE("stats: current, peak and total of bytes and blocks") {
  OwnHeap own;
  Stats stats(own.heap);
  const Block first = stats.allocate(Bytes{100});
  const Block second = stats.allocate(Bytes{50});
  stats.deallocate(first);
  const Block third = stats.allocate(Bytes{10});
  const ebb::StatsFigures figures = stats.figures();
  CHECK(figures.bytes.current == 60);
  CHECK(figures.bytes.peak == 150);
  CHECK(figures.bytes.total == 160);
  CHECK(figures.blocks.current == 2);
  CHECK(figures.blocks.peak == 2);
  CHECK(figures.blocks.total == 3);
  CHECK(figures.refusals == 0);
  stats.deallocate(second);
  stats.deallocate(third);
  CHECK(stats.figures().bytes.current == 0);
  CHECK(stats.figures().blocks.current == 0);
}

TEST_CASE("stats: a refusal is counted as one and changes nothing else") {
  OwnHeap own;
  ebb::Fault fault(own.heap, {.at = 1});
  Stats stats(fault);
  CHECK_FALSE(stats.try_allocate(Bytes{100}));
  CHECK(stats.figures().refusals == 1);
  CHECK(stats.figures().bytes.total == 0);
  CHECK(stats.figures().blocks.peak == 0);
}

TEST_CASE("stats: a nested section starts at zero and counts for the outer ones") {
  OwnHeap own;
  Stats stats(own.heap);
  const Block before = stats.allocate(Bytes{1000});
  stats.push();
  const Block inside = stats.allocate(Bytes{10});
  stats.push();
  stats.deallocate(stats.allocate(Bytes{300}));
  const ebb::StatsFigures inner = stats.pop();
  CHECK(inner.bytes.current == 0);
  CHECK(inner.bytes.peak == 300);
  CHECK(inner.blocks.total == 1);
  stats.deallocate(before);
  const ebb::StatsFigures outer = stats.pop();
  CHECK(outer.bytes.current == 10 - 1000);  // what was made before ended inside
  CHECK(outer.bytes.peak == 310);
  CHECK(outer.bytes.total == 310);
  CHECK(outer.blocks.current == 0);
  CHECK(stats.figures().bytes.peak == 1310);
  CHECK(stats.figures().bytes.current == 10);
  stats.deallocate(inside);
}

TEST_CASE("stats: sections have a bottom and a greatest depth") {
  OwnHeap own;
  Stats stats(own.heap);
  CHECK_THROWS_AS(stats.pop(), std::invalid_argument);
  for (std::size_t i = 0; i < Stats::depth_max; ++i) {
    stats.push();
  }
  CHECK_THROWS_AS(stats.push(), std::invalid_argument);
  stats.deallocate(stats.allocate(Bytes{1}));
  for (std::size_t i = 0; i < Stats::depth_max; ++i) {
    CHECK(stats.pop().blocks.total == 1);
  }
  CHECK_THROWS_AS(stats.pop(), std::invalid_argument);
}

TEST_CASE("stats: frees by several threads all count") {
  OwnHeap own;
  Stats stats(own.heap);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 400; ++i) {
    blocks.push_back(stats.allocate(Bytes{i}));
  }
  {
    std::vector<std::jthread> crew;
    for (std::size_t t = 0; t < 4; ++t) {
      crew.emplace_back([&, t] {
        for (std::size_t i = t; i < blocks.size(); i += 4) {
          stats.deallocate(blocks[i]);
        }
      });
    }
  }
  CHECK(stats.figures().bytes.current == 0);
  CHECK(stats.figures().blocks.current == 0);
  CHECK(stats.figures().blocks.peak == 400);
}
