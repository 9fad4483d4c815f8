// SPDX-License-Identifier: Apache-2.0
// std::pmr containers on a heap, and blocks from a memory_resource. [alloc.resource]
#include "heap_fixture.h"

#include <ebb/alloc/fault.h>
#include <ebb/alloc/limit.h>
#include <ebb/alloc/pmr.h>

#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <memory_resource>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::FromPmr;
using ebb::PmrResource;
using ebb::test::OwnHeap;
using Sizes = std::initializer_list<std::size_t>;

TEST_CASE("pmr: standard containers live in a heap and leave nothing") {
  OwnHeap own;
  PmrResource memory(own.heap);
  {
    std::pmr::vector<std::pmr::string> words(&memory);
    for (int i = 0; i < 200; ++i) {
      words.emplace_back("a word that is too long for the small buffer: " + std::to_string(i));
    }
    std::pmr::unordered_map<int, int> squares(&memory);
    for (int i = 0; i < 500; ++i) {
      squares[i] = i * i;
    }
    CHECK(own.heap.stats().blocks_live > 700);
    CHECK(words[150].find("150") != std::pmr::string::npos);
    CHECK(squares[77] == 77 * 77);
    std::pmr::monotonic_buffer_resource steps(&memory);
    std::pmr::vector<double> values(1000, 1.5, &steps);
    CHECK(values[999] == 1.5);
  }
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("pmr: bytes are aligned as asked, whatever the alignment") {
  OwnHeap own;
  PmrResource memory(own.heap);
  for (std::size_t align = 1; align <= 65536; align *= 2) {
    for (const std::size_t size : Sizes{0, 1, 100, 4097}) {
      void* data = memory.allocate(size, align);
      CHECK(reinterpret_cast<std::uintptr_t>(data) % align == 0);
      std::memset(data, 7, size);
      memory.deallocate(data, size, align);
    }
  }
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("pmr: a refusal is OutOfMemory with the stack's figures") {
  OwnHeap own({.name = "heap"});
  ebb::Limit limit(own.heap, Bytes{1000});
  PmrResource memory(limit);
  std::pmr::vector<char> bytes(&memory);
  try {
    bytes.resize(1001);
    FAIL("the limit was not kept");
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().resource == "limit(heap)");
  }
  CHECK_THROWS_AS(static_cast<void>(memory.allocate(std::numeric_limits<std::size_t>::max())),
                  ebb::OutOfMemory);
  bytes.resize(500);
  CHECK(bytes.size() == 500);
}

TEST_CASE("pmr: a container may be dropped by another thread") {
  OwnHeap own;
  PmrResource memory(own.heap);
  auto values = std::make_unique<std::pmr::vector<int>>(5000, 3, &memory);
  std::jthread([&] { values.reset(); }).join();
  own.heap.drain();
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("pmr: bridges are equal only to themselves") {
  OwnHeap own;
  const PmrResource memory(own.heap);
  const PmrResource other(own.heap);
  CHECK(memory == memory);
  CHECK(memory != other);
  CHECK(&memory.upstream() == &own.heap);
}

TEST_CASE("from pmr: blocks, figures and the way back") {
  FromPmr resource(*std::pmr::new_delete_resource());
  const Block first = resource.allocate(Bytes{1000});
  const Block second = resource.allocate(Bytes{0}, ebb::Align{4096});
  CHECK(reinterpret_cast<std::uintptr_t>(second.data) % 4096 == 0);
  CHECK(resource.live() == Bytes{1000});
  CHECK(resource.blocks_live() == 2);
  ebb::test::fill(first, 1);
  CHECK(ebb::test::holds(first, 1));
  ebb::own_block(first).reset();
  std::jthread([&] { resource.deallocate(second); }).join();
  CHECK(resource.live() == Bytes{0});
  CHECK(resource.blocks_live() == 0);
}

TEST_CASE("from pmr: what the memory resource throws is a refusal") {
  FromPmr resource(*std::pmr::null_memory_resource());
  CHECK_FALSE(resource.try_allocate(Bytes{1}));
  try {
    resource.deallocate(resource.allocate(Bytes{10}));
    FAIL("not refused");
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().asked == Bytes{10});
    CHECK(error.info().resource == "pmr");
  }
  CHECK(resource.live() == Bytes{0});
}

TEST_CASE("from pmr: there and back again, over a pool of the standard library") {
  OwnHeap own;
  PmrResource outward(own.heap);
  {
    std::pmr::unsynchronized_pool_resource pool(&outward);
    FromPmr inward(pool);
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < 100; ++i) {
      blocks.push_back(inward.allocate(Bytes{i * 20}));
      ebb::test::fill(blocks.back(), i);
    }
    for (std::size_t i = 0; i < 100; ++i) {
      CHECK(ebb::test::holds(blocks[i], i));
      inward.deallocate(blocks[i]);
    }
  }
  CHECK(own.heap.stats().blocks_live == 0);
}
