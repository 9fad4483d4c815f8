// SPDX-License-Identifier: Apache-2.0
// A limit counts exactly what was asked for, among threads too. [alloc.adaptor]
#include "heap_fixture.h"

#include <ebb/alloc/fault.h>
#include <ebb/alloc/limit.h>
#include <ebb/alloc/pmr.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory_resource>
#include <thread>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::Limit;
using ebb::test::OwnHeap;

TEST_CASE("limit: the last byte is granted, one more is refused") {
  OwnHeap own;
  Limit limit(own.heap, Bytes{1000});
  const Block first = limit.allocate(Bytes{600});
  const Block second = limit.allocate(Bytes{400});
  CHECK(limit.live() == Bytes{1000});
  CHECK_FALSE(limit.try_allocate(Bytes{1}));
  const Block nothing = limit.try_allocate(Bytes{0});
  CHECK(nothing);
  limit.deallocate(nothing);
  limit.deallocate(first);
  CHECK(limit.live() == Bytes{400});
  const Block third = limit.allocate(Bytes{600});
  limit.deallocate(second);
  limit.deallocate(third);
  CHECK(limit.live() == Bytes{0});
}

TEST_CASE("limit: a refused request changes no figure") {
  OwnHeap own;
  ebb::Fault fault(own.heap, {.at = 2});
  Limit limit(fault, Bytes{1000});
  const Block block = limit.allocate(Bytes{100});
  const auto before = own.heap.stats();
  CHECK_FALSE(limit.try_allocate(Bytes{100}));  // by what is below
  CHECK_FALSE(limit.try_allocate(Bytes{901}));
  CHECK_FALSE(limit.try_allocate(Bytes{std::numeric_limits<std::size_t>::max()}));
  CHECK(limit.live() == Bytes{100});
  CHECK(own.heap.stats().allocations == before.allocations);
  limit.deallocate(block);
}

TEST_CASE("limit: the exception says the limit, what is live and who refused") {
  OwnHeap own({.name = "kitchen"});
  Limit limit(own.heap, Bytes{1000});
  const Block block = limit.allocate(Bytes{600});
  try {
    limit.deallocate(limit.allocate(Bytes{500}));
    FAIL("the limit was not kept");
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().asked == Bytes{500});
    CHECK(error.info().limit == Bytes{1000});
    CHECK(error.info().live == Bytes{600});
    CHECK(error.info().largest_hole <= Bytes{400});
    CHECK(error.info().resource == "limit(kitchen)");
  }
  limit.deallocate(block);
  limit.deallocate(limit.allocate(Bytes{500}));
}

TEST_CASE("limit: a heap's own refusal is told with the heap's figures") {
  OwnHeap own({.name = "small", .limit = Bytes{1 << 20}});
  Limit limit(own.heap, Bytes{1 << 30});
  try {
    limit.deallocate(limit.allocate(Bytes{16 << 20}));
    FAIL("the heap's limit was not kept");
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().limit == Bytes{1 << 20});
    CHECK(error.info().resource == "limit(small)");
  }
}

TEST_CASE("limit: zero means none, and a new limit holds from then on") {
  OwnHeap own;
  Limit limit(own.heap, Bytes{0});
  const Block block = limit.allocate(Bytes{5000});
  limit.set_limit(Bytes{1000});
  CHECK_FALSE(limit.try_allocate(Bytes{1}));
  limit.deallocate(block);
  limit.deallocate(limit.allocate(Bytes{1000}));
}

TEST_CASE("limit: threads never exceed it together") {
  constexpr std::size_t most = 3000;
  ebb::FromPmr shared(*std::pmr::new_delete_resource());  // any thread allocates
  Limit limit(shared, Bytes{most});
  std::atomic<std::size_t> granted{0};
  std::atomic<std::size_t> granted_peak{0};
  std::atomic<std::uint64_t> refused{0};
  const std::uint64_t rounds = ebb::test::stress(2000);
  const auto work = [&] {
    // On until two have met, for a while.
    for (std::uint64_t i = 0; i < rounds || (refused == 0 && i < rounds + 1000000); ++i) {
      const Block block = limit.try_allocate(Bytes{1000});
      if (!block) {
        ++refused;
        continue;
      }
      const std::size_t now = granted += 1000;
      std::size_t seen = granted_peak.load();
      while (seen < now && !granted_peak.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::yield();
      granted -= 1000;
      limit.deallocate(block);
    }
  };
  {
    std::vector<std::jthread> crew;
    for (int t = 0; t < 6; ++t) {
      crew.emplace_back(work);
    }
  }
  CHECK(granted_peak.load() <= most);
  CHECK(refused.load() > 0);  // else it was never put to the test
  CHECK(limit.live() == Bytes{0});
  limit.deallocate(limit.allocate(Bytes{most}));
}
