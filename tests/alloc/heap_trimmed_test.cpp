// SPDX-License-Identifier: Apache-2.0
// Holes whose pages have gone back: as many as there are, each is found as quickly as others.
// [alloc.heap]
#include "heap_fixture.h"

#include <chrono>
#include <cstddef>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::OwnHeap;

TEST_CASE("heap: holes whose pages went back are found as quickly as others") {
  constexpr std::size_t many = 20'000;
  OwnHeap own;
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < many; ++i) {
    blocks.push_back(own.take(16'384));
  }
  const auto seconds_to_refill = [&](bool trimmed) {
    for (std::size_t i = 0; i < many; i += 2) {
      own.heap.deallocate(blocks[i]);
    }
    if (trimmed) {
      CHECK(own.heap.trim() >= Bytes{many / 2 * 12'288});
    }
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < many; i += 2) {
      blocks[i] = own.take(16'384);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double as_others = seconds_to_refill(false);
  CHECK(seconds_to_refill(true) < 10 * as_others + 0.1);
  for (const Block& block : blocks) {
    own.heap.deallocate(block);
  }
}
