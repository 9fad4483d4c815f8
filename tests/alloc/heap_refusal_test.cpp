// SPDX-License-Identifier: Apache-2.0
// What a refused request leaves behind: nothing; and limits and waits at the ends of their range.
// [alloc.heap]
#include "heap_fixture.h"
#include "support/counting_source.h"
#include "support/failing_source.h"

#include <ebb/alloc/pool.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

using ebb::Block;
using ebb::Bytes;
using ebb::test::OwnHeap;
using namespace ebb::literals;

TEST_CASE("refusal: what the limit refuses keeps no address space") {
  ebb::test::CountingSource source(ebb::system_source());
  OwnHeap own(source, {.limit = 1_MiB, .reservation = 4_MiB});
  const Bytes before = source.counts().reserved;
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK_FALSE(own.heap.try_allocate(Bytes{std::size_t{1} << (32 + 2 * i)}));
    CHECK_FALSE(own.heap.try_allocate(2_MiB, ebb::Align{std::size_t{1} << (26 + 2 * i)}));
  }
  CHECK(source.counts().reserved == before);
}

TEST_CASE("refusal: what the source cannot commit keeps no address space, nor its records") {
  ebb::test::CountingSource counting(ebb::system_source());
  ebb::test::FailingSource source(counting);
  ebb::test::CountingSource records(ebb::system_source());
  OwnHeap own(source, {.reservation = 4_MiB, .records = &records});
  own.heap.deallocate(own.take(100));
  const Bytes before = counting.counts().reserved;
  const Bytes records_before = records.counts().reserved;
  for (std::size_t i = 0; i < 8; ++i) {
    source.fail_at(2, 1000);  // the reservation is granted, the pages are not
    CHECK_FALSE(own.heap.try_allocate(Bytes{std::size_t{8 + i} << 20}));
  }
  source.never_fail();
  CHECK(counting.counts().reserved == before);
  CHECK(records.counts().reserved == records_before);
  const Block block = own.take(8 << 20);
  ebb::test::fill(block, 1);
  CHECK(ebb::test::holds(block, 1));
  own.heap.deallocate(block);
}

TEST_CASE("refusal: the longest wait there is waits for what others free") {
  OwnHeap own({.limit = 2_MiB, .limit_wait = std::chrono::milliseconds::max()});
  const Block first = own.take(1 << 20);
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    own.heap.deallocate(first);
  });
  const Block second = own.heap.try_allocate(Bytes{3 << 19});
  CHECK(second);
  other.join();
  if (second) {
    own.heap.deallocate(second);
  }
}

TEST_CASE("refusal: a negative wait is the caller's mistake") {
  CHECK_THROWS_WITH_AS(
      ebb::Pool(ebb::system_source(), {.name = "x", .limit_wait = std::chrono::milliseconds(-1)}),
      "[Pool::Pool] the wait for the limit of pool \"x\" is negative", std::invalid_argument);
}

TEST_CASE("refusal: no size and no alignment is beyond asking") {
  OwnHeap own({.limit = 1_GiB});
  for (const std::size_t bytes : {std::size_t{1} << 46, (std::size_t{1} << 46) + 1,
                                  std::size_t{1} << 47, std::size_t{1} << 63, ~std::size_t{0}}) {
    for (const std::size_t align : {std::size_t{1}, std::size_t{1} << 40, std::size_t{1} << 63}) {
      CHECK_FALSE(own.heap.try_allocate(Bytes{bytes}, ebb::Align{align}));
      CHECK_FALSE(own.heap.try_allocate_at(nullptr, Bytes{bytes}));
    }
  }
  const Block block = own.heap.allocate(Bytes{0}, ebb::Align{1});
  CHECK(block.data != nullptr);
  own.heap.deallocate(block);
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("refusal: more than the whole machine has is refused, not granted and then fatal") {
  ebb::test::CountingSource source(ebb::system_source());
  OwnHeap own(source);
  const Bytes before = source.counts().reserved;
  CHECK_FALSE(own.heap.try_allocate(Bytes{std::size_t{1} << 46}));
  CHECK(source.counts().reserved == before);
}

TEST_CASE("refusal: under bypass a limit counts what was given back to parked heaps") {
  ebb::Pool pool(ebb::system_source(), {.limit = 1_MiB, .bypass = true});
  ebb::Heap& first = pool.acquire();
  ebb::Heap& second = pool.acquire();
  const Block block = first.allocate(800_KiB);
  ebb::Pool::park(first);
  first.deallocate(block);  // a foreign free: nobody owns the heap
  const Block again = second.try_allocate(800_KiB);
  CHECK(again);
  CHECK_FALSE(second.try_allocate(800_KiB));
  if (again) {
    second.deallocate(again);
  }
  ebb::Pool::park(second);
}

TEST_CASE("refusal: under bypass a limit waits, too") {
  OwnHeap own({.limit = 1_MiB, .bypass = true, .limit_wait = std::chrono::seconds(60)});
  const Block block = own.take(800 << 10);
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    own.heap.deallocate(block);
  });
  const Block again = own.heap.try_allocate(800_KiB);
  CHECK(again);
  other.join();
  if (again) {
    own.heap.deallocate(again);
  }
}
