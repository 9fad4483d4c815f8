// SPDX-License-Identifier: Apache-2.0
// Memory by bare address: found again, and mistakes lose nothing. [alloc.resource]
#include "heap_fixture.h"
#include "support/malloc_interposer.h"

#include <ebb/alloc/guard.h>
#include <ebb/alloc/limit.h>
#include <ebb/alloc/raw_resource.h>

#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

using ebb::Bytes;
using ebb::RawResource;
using ebb::test::OwnHeap;

TEST_CASE("raw resource: it is what Thrust asks of an allocator") {
  static_assert(std::is_same_v<RawResource::value_type, char>);
  OwnHeap own;
  RawResource raw(own.heap);
  char* data = raw.allocate(1000);
  CHECK(reinterpret_cast<std::uintptr_t>(data) % 64 == 0);
  CHECK(raw.blocks_live() == 1);
  char* nothing = raw.allocate(0);
  CHECK(nothing != nullptr);
  CHECK(nothing != data);
  raw.deallocate(data, 1000);
  raw.deallocate(nothing, 0);
  CHECK(raw.blocks_live() == 0);
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("raw resource: blocks of a device are aligned as is usual there") {
  OwnHeap own;
  RawResource raw(own.heap, ebb::Stream{{ebb::DeviceKind::sim, 0}, 3});
  for (std::size_t i = 1; i < 20; ++i) {
    CHECK(reinterpret_cast<std::uintptr_t>(raw.allocate(i)) % 256 == 0);
  }
}

TEST_CASE("raw resource: a wrong address or size is refused, and nothing is lost") {
  OwnHeap own;
  RawResource raw(own.heap);
  char* data = raw.allocate(1000);
  CHECK_THROWS_AS(raw.deallocate(data + 1, 1000), std::invalid_argument);
  CHECK_THROWS_AS(raw.deallocate(data, 999), std::invalid_argument);
  CHECK_THROWS_AS(raw.deallocate(nullptr, 0), std::invalid_argument);
  CHECK_THROWS_WITH(raw.deallocate(data, 4),
                    "[RawResource::deallocate] the block has 1000 bytes, not 4");
  CHECK(raw.blocks_live() == 1);
  raw.deallocate(data, 1000);
  CHECK_THROWS_AS(raw.deallocate(data, 1000), std::invalid_argument);
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("raw resource: a refusal throws and leaves no entry") {
  OwnHeap own;
  ebb::Limit limit(own.heap, Bytes{1000});
  RawResource raw(limit);
  CHECK_THROWS_AS(raw.allocate(1001), ebb::OutOfMemory);
  CHECK(raw.blocks_live() == 0);
  raw.deallocate(raw.allocate(1000), 1000);
}

TEST_CASE("raw resource: its end gives back what is still live, through every layer") {
  OwnHeap own;
  ebb::Guard guard(own.heap);
  {
    RawResource raw(guard);
    for (std::size_t i = 0; i < 300; ++i) {
      ebb::test::fill({raw.allocate(i), Bytes{i}, ebb::Align{64}, {}, nullptr}, i);
    }
  }
  guard.flush();
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("raw resource: threads give back what one allocated") {
  OwnHeap own;
  RawResource raw(own.heap);
  std::vector<char*> blocks;
  for (std::size_t i = 0; i < 1000; ++i) {
    blocks.push_back(raw.allocate(i));
  }
  {
    std::vector<std::jthread> crew;
    for (std::size_t t = 0; t < 4; ++t) {
      crew.emplace_back([&, t] {
        for (std::size_t i = t; i < blocks.size(); i += 4) {
          raw.deallocate(blocks[i], i);
        }
      });
    }
  }
  CHECK(raw.blocks_live() == 0);
  own.heap.drain();
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("raw resource: a steady program makes no heap call") {
  OwnHeap own;
  RawResource raw(own.heap);
  const auto round = [&] {
    char* blocks[40];
    for (std::size_t i = 0; i < 40; ++i) {
      blocks[i] = raw.allocate(i * 300);
    }
    for (std::size_t i = 0; i < 40; ++i) {
      raw.deallocate(blocks[i], i * 300);
    }
  };
  round();
  const auto before = ebb::test::heap_calls_of_this_thread();
  for (int i = 0; i < 100; ++i) {
    round();
  }
  const auto after = ebb::test::heap_calls_of_this_thread();
  CHECK(after.allocations == before.allocations);
  CHECK(after.frees == before.frees);
}
