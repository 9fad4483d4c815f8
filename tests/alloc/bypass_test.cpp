// SPDX-License-Identifier: Apache-2.0
// Every block straight from the system, to bisect memory errors (EBB_BYPASS=1): same contract, same
// figures.
#include "heap_fixture.h"
#include "support/malloc_interposer.h"

#include <ebb/alloc/pool.h>

#include <thread>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::OwnHeap;
using namespace ebb::literals;

TEST_CASE("bypass: each block is a system allocation of its own") {
  OwnHeap own({.bypass = true});
  own.heap.deallocate(own.take(64));
  const auto before = ebb::test::heap_calls_of_this_thread();
  const Block block = own.take(300, 256);
  own.heap.deallocate(block);
  const auto after = ebb::test::heap_calls_of_this_thread();
  if (ebb::test::heap_calls_counted()) {
    CHECK(after.allocations == before.allocations + 1);
    CHECK(after.frees == before.frees + 1);
  }
  CHECK(reinterpret_cast<std::uintptr_t>(block.data) % 256 == 0);
}

TEST_CASE("bypass: blocks are counted as any others") {
  OwnHeap own({.limit = 1_MiB, .bypass = true});
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 50; ++i) {
    blocks.push_back(own.take(i * 100, i % 2 == 0 ? 64 : 4096));
    ebb::test::fill(blocks.back(), i);
  }
  CHECK(own.heap.stats().blocks_live == 50);
  CHECK(own.heap.stats().reserved == own.heap.stats().live);
  CHECK_FALSE(own.heap.try_allocate(1_MiB));
  CHECK_FALSE(own.heap.try_allocate_at(blocks[0].data, Bytes{64}));
  for (std::size_t i = 0; i < 50; ++i) {
    CHECK(ebb::test::holds(blocks[i], i));
    if (i % 2 == 0) {
      own.heap.deallocate(blocks[i]);
    } else {
      std::jthread([&] { own.heap.deallocate(blocks[i]); }).join();
    }
  }
  own.heap.drain();
  CHECK(own.heap.stats().live == Bytes{0});
  CHECK(own.heap.stats().reserved == Bytes{0});
  own.heap.deallocate(own.heap.allocate(1_MiB));
}

TEST_CASE("bypass: blocks outlive their pool") {
  auto pool = std::make_unique<ebb::Pool>(ebb::system_source(), ebb::PoolOptions{.bypass = true});
  ebb::Heap& heap = pool->acquire();
  const Block block = heap.allocate(Bytes{1000});
  ebb::Pool::park(heap);
  pool.reset();
  ebb::test::fill(block, 1);
  CHECK(ebb::test::holds(block, 1));
  ebb::own_block(block).reset();
}
