// SPDX-License-Identifier: Apache-2.0
// The byte budget of a pool, what a refusal tells, and pages that go back. [alloc.heap]
#include "heap_fixture.h"
#include "support/counting_source.h"
#include "support/failing_source.h"

#include <ebb/alloc/pool.h>

#include <string>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::begin_of;
using ebb::test::OwnHeap;
using namespace ebb::literals;

namespace {

std::size_t page() {
  return ebb::system_source().page_size().count();
}

}  // namespace

TEST_CASE("limit: reserved bytes never pass it, and the refusal says what was known") {
  OwnHeap own({.name = "small", .limit = 1_MiB});
  const Block a = own.take(500000);
  const Block b = own.take(500000);
  own.heap.deallocate(a);
  const auto before = own.heap.stats();
  try {
    own.take(600000);
    FAIL("was not refused");
  } catch (const ebb::OutOfMemory& error) {
    const auto& info = error.info();
    CHECK(info.asked == Bytes{600000});
    CHECK(info.limit == 1_MiB);
    CHECK(info.live == Bytes{500032});
    CHECK(info.cached + info.live == own.heap.stats().reserved);
    CHECK(info.largest_hole == Bytes{500032});
    CHECK(info.resource == "small");
    CHECK(std::string(error.what()).find("\"small\"") != std::string::npos);
  }
  CHECK(own.heap.stats().live == before.live);
  CHECK(own.heap.stats().blocks_live == before.blocks_live);
  CHECK(own.heap.stats().reserved <= 1_MiB);
  const Block c = own.take(500000);  // the hole is still there
  CHECK(c.data == a.data);
  CHECK_FALSE(own.heap.try_allocate(1_MiB));
  own.heap.deallocate(b);
  own.heap.deallocate(c);
  const Block all = own.take((1_MiB).count());
  CHECK(own.heap.stats().reserved == 1_MiB);
  own.heap.deallocate(all);
}

TEST_CASE("limit: idle pages make room before a request is refused") {
  OwnHeap own({.limit = 1_MiB});
  std::vector<Block> blocks;
  blocks.reserve(4);
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(own.take((256_KiB).count()));
  }
  own.heap.deallocate(blocks[0]);
  own.heap.deallocate(blocks[2]);
  // No hole holds it, and the budget is used up; but half of it is idle.
  const Block large = own.take((400_KiB).count());
  ebb::test::fill(large, 1);
  CHECK(own.heap.stats().reserved <= 1_MiB);
  for (const Block& block : {blocks[1], blocks[3], large}) {
    own.heap.deallocate(block);
  }
}

TEST_CASE("limit: it holds over all heaps, and parked heaps are trimmed for others") {
  ebb::Pool pool(ebb::system_source(), {.limit = 1_MiB});
  ebb::Heap& first = pool.acquire();
  ebb::Heap& second = pool.acquire();
  REQUIRE(&first != &second);
  const Block a = first.allocate(700_KiB);
  CHECK_FALSE(second.try_allocate(700_KiB));
  first.deallocate(a);
  CHECK_FALSE(second.try_allocate(700_KiB));  // first is owned, so its pages are its owner's
  ebb::Pool::park(first);
  const Block b = second.allocate(700_KiB);
  CHECK(pool.stats().reserved <= 1_MiB);
  second.deallocate(b);
  ebb::Pool::park(second);
}

TEST_CASE("trim: whole idle pages go back and are counted again when used") {
  ebb::test::CountingSource source(ebb::system_source());
  OwnHeap own(source);
  const Block low = own.take(10 * page() + 64);
  const Block mid = own.take(100 * page());
  const Block high = own.take(10 * page());
  ebb::test::fill(low, 1);
  ebb::test::fill(high, 3);
  own.heap.deallocate(mid);
  const Bytes before = own.heap.stats().reserved;
  CHECK(own.heap.trim() == Bytes{99 * page()});
  CHECK(own.heap.stats().reserved == before - Bytes{99 * page()});
  CHECK(own.heap.trim() == Bytes{0});
  CHECK(source.counts().decommits == 1);
  CHECK(ebb::test::holds(low, 1));
  CHECK(ebb::test::holds(high, 3));

  const Block part = own.take(20 * page());
  CHECK(part.data == mid.data);
  CHECK(own.heap.stats().reserved <= before - Bytes{79 * page()});
  ebb::test::fill(part, 2);
  const Block rest = own.take(80 * page());
  CHECK(own.heap.stats().reserved == before);
  ebb::test::fill(rest, 4);
  CHECK(ebb::test::holds(part, 2));
  for (const Block& block : {low, high, part, rest}) {
    own.heap.deallocate(block);
  }
  own.heap.trim();
  CHECK(own.heap.stats().reserved == Bytes{0});
}

TEST_CASE("trim: holes that have their pages come before those whose pages went back") {
  OwnHeap own;
  const Block low = own.take(10 * page());
  const Block pin = own.take(page());
  const Block high = own.take(20 * page());
  const Block top = own.take(page());
  own.heap.deallocate(low);
  own.heap.trim();
  own.heap.deallocate(high);
  const Bytes before = own.heap.stats().reserved;
  const Block first = own.take(10 * page());  // which low's hole fits best
  CHECK(first.data == high.data);
  CHECK(own.heap.stats().reserved == before);
  const Block second = own.take(10 * page());
  CHECK(own.heap.stats().reserved == before);
  const Block third = own.take(10 * page());  // sooner than growth
  CHECK(third.data == low.data);
  CHECK(own.heap.stats().reserved == before + Bytes{10 * page()});
  for (const Block& block : {pin, top, first, second, third}) {
    own.heap.deallocate(block);
  }
}

TEST_CASE("trim: fresh pages of the system source read as zeros again") {
  OwnHeap own;
  const Block pin = own.take(page());
  Block block = own.take(16 * page());
  const Block top = own.take(8192);
  ebb::test::fill(block, 9);
  own.heap.deallocate(block);
  own.heap.trim();
  block = own.take(16 * page());
  const auto* bytes = static_cast<const unsigned char*>(block.data);
  // The block's first and last page are shared with its neighbours and may be kept.
  CHECK(bytes[page()] == 0);
  CHECK(bytes[8 * page() + 5] == 0);
  for (const Block& it : {pin, block, top}) {
    own.heap.deallocate(it);
  }
}

TEST_CASE("trim: the pool trims parked heaps and the caller's, and asks the owners of others") {
  ebb::Pool pool(ebb::system_source(), {});
  ebb::Heap& parked = pool.acquire();
  ebb::Heap& mine = pool.acquire();
  for (ebb::Heap* heap : {&parked, &mine}) {
    heap->deallocate(heap->allocate(1_MiB));
  }
  ebb::Pool::park(parked);
  CHECK(pool.stats().reserved == 2_MiB);
  CHECK(pool.trim() == 2_MiB);
  CHECK(pool.stats().reserved == Bytes{0});
  CHECK(pool.stats().heaps == 2);
  ebb::Pool::park(mine);
}

TEST_CASE("reservation: a large one that is refused becomes smaller ones") {
  ebb::test::FailingSource source(ebb::system_source());
  source.refuse_reservations_above(4_MiB);
  OwnHeap own(source, {.reservation = 1_GiB});
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 40; ++i) {
    blocks.push_back(own.take((1_MiB).count() - 64 * i));
    ebb::test::fill(blocks.back(), i);
  }
  CHECK_FALSE(own.heap.try_allocate(8_MiB));
  const Block exact = own.take((3_MiB).count());
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(ebb::test::holds(blocks[i], i));
    own.heap.deallocate(blocks[i]);
  }
  own.heap.deallocate(exact);
  own.heap.trim();
  CHECK(own.heap.stats().reserved == Bytes{0});
}

TEST_CASE("reservation: a pool of zero bytes is the caller's mistake") {
  CHECK_THROWS_WITH_AS(ebb::Pool(ebb::system_source(), {.name = "x", .reservation = Bytes{0}}),
                       "[Pool::Pool] the reservation of pool \"x\" is zero bytes",
                       std::invalid_argument);
}

TEST_CASE("reservation: no address space at all is OutOfMemory from acquire") {
  ebb::test::FailingSource source(ebb::system_source());
  source.refuse_reservations_above(Bytes{0});
  ebb::Pool pool(source, {.name = "none"});
  CHECK_THROWS_WITH_AS(pool.acquire(), doctest::Contains("[Pool::acquire]"), ebb::OutOfMemory);
  source.refuse_reservations_above(1_GiB);
  ebb::Heap& heap = pool.acquire();
  CHECK(pool.owns(heap));
  ebb::Pool::park(heap);
}
