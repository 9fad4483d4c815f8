// SPDX-License-Identifier: Apache-2.0
// Blocks at given addresses, and the question whether a range is free: what replay is built on.
// [alloc.replay]
#include "heap_fixture.h"

#include <ebb/alloc/heap.h>

using ebb::Block;
using ebb::Bytes;
using ebb::Range;
using ebb::test::begin_of;
using ebb::test::OwnHeap;

namespace {

bool is_free(OwnHeap& own, std::byte* begin, std::size_t bytes) {
  return own.heap.is_free({begin, Bytes{bytes}});
}

}  // namespace

TEST_CASE("heap at: a hole is cut where asked") {
  OwnHeap own;
  const Block whole = own.take(65536);
  const Block pin = own.take(8192);
  std::byte* base = begin_of(whole);
  own.heap.deallocate(whole);
  CHECK(is_free(own, base, 65536));

  const Block middle = own.heap.try_allocate_at(base + 16384, Bytes{1000});
  REQUIRE(middle);
  CHECK(begin_of(middle) == base + 16384);
  CHECK(middle.bytes == Bytes{1000});
  ebb::test::fill(middle, 1);
  CHECK(is_free(own, base, 16384));
  CHECK_FALSE(is_free(own, base, 16385));
  CHECK_FALSE(is_free(own, base + 16384 + 1000, 8));  // set aside: rounded to 64
  CHECK(is_free(own, base + 16384 + 1024, 65536 - 16384 - 1024));

  const Block first = own.heap.try_allocate_at(base, Bytes{16384});
  const Block rest = own.heap.try_allocate_at(base + 16384 + 1024, Bytes{65536 - 16384 - 1024});
  CHECK(first);
  CHECK(rest);
  CHECK_FALSE(is_free(own, base, 64));
  for (const Block& block : {first, middle, rest}) {
    own.heap.deallocate(block);
  }
  CHECK(is_free(own, base, 65536));
  own.heap.deallocate(pin);
}

TEST_CASE("heap at: a range with a taken byte is refused and nothing changes") {
  OwnHeap own;
  const Block a = own.take(16384);
  const Block b = own.take(16384);
  const Block c = own.take(16384);
  own.heap.deallocate(b);
  const auto before = own.heap.stats();
  CHECK_FALSE(own.heap.try_allocate_at(begin_of(a), Bytes{64}));
  CHECK_FALSE(own.heap.try_allocate_at(begin_of(b) - 64, Bytes{128}));
  CHECK_FALSE(own.heap.try_allocate_at(begin_of(b), Bytes{16384 + 1}));
  CHECK_FALSE(own.heap.try_allocate_at(begin_of(b) + 8, Bytes{64}));  // no multiple of 64
  CHECK(own.heap.stats().live == before.live);
  CHECK(own.heap.stats().reserved == before.reserved);
  own.heap.deallocate(a);
  own.heap.deallocate(c);
}

TEST_CASE("heap at: beyond its end the heap grows, and skipped pages cost nothing") {
  OwnHeap own;
  const std::size_t page = ebb::system_source().page_size().count();
  const Block first = own.take(8192);
  std::byte* far = begin_of(first) + 1024 * page;
  CHECK(is_free(own, far, 64 * page));
  const Block high = own.heap.try_allocate_at(far, Bytes{4 * page});
  REQUIRE(high);
  ebb::test::fill(high, 2);
  CHECK(own.heap.stats().reserved == Bytes{8192 + 4 * page});
  CHECK_FALSE(is_free(own, far - 64, 128));

  // The gap is a hole like any other; its pages count once they are used.
  const Block gap = own.take(100 * page);
  CHECK(begin_of(gap) > begin_of(first));
  CHECK(begin_of(gap) < far);
  ebb::test::fill(gap, 3);
  CHECK(own.heap.stats().reserved == Bytes{8192 + 104 * page});
  CHECK(ebb::test::holds(high, 2));
  for (const Block& block : {first, high, gap}) {
    own.heap.deallocate(block);
  }
  own.heap.trim();
  CHECK(own.heap.stats().reserved == Bytes{0});
}

TEST_CASE("heap at: a range that begins in the last hole and ends beyond it") {
  OwnHeap own;
  const Block a = own.take(16384);
  const Block b = own.take(16384);
  own.heap.deallocate(b);
  const Block c = own.heap.try_allocate_at(begin_of(b) + 8192, Bytes{65536});
  REQUIRE(c);
  ebb::test::fill(c, 1);
  CHECK(is_free(own, begin_of(b), 8192));
  CHECK_FALSE(own.heap.try_allocate_at(begin_of(c) + 65536 - 64, Bytes{128}));
  own.heap.deallocate(a);
  own.heap.deallocate(c);
}

TEST_CASE("heap at: addresses of others are neither free nor to be had") {
  OwnHeap own({.reservation = Bytes{1 << 20}});
  OwnHeap other;
  const Block foreign = other.take(8192);
  CHECK_FALSE(is_free(own, begin_of(foreign), 64));
  CHECK_FALSE(own.heap.try_allocate_at(begin_of(foreign), Bytes{64}));
  const Block mine = own.take(8192);
  std::byte* end = begin_of(mine) + (1 << 20);
  CHECK_FALSE(own.heap.try_allocate_at(end - 64, Bytes{128}));
  CHECK_FALSE(is_free(own, end - 64, 128));
  CHECK(is_free(own, end - 64, 64));
  alignas(64) std::byte local[64];
  CHECK_FALSE(own.heap.try_allocate_at(local, Bytes{64}));
  CHECK_FALSE(own.heap.is_free(Range{}));
  own.heap.deallocate(mine);
  other.heap.deallocate(foreign);
}

TEST_CASE("heap at: a slab counts as taken, its free slots too") {
  OwnHeap own;
  const Block slot = own.take(256);
  CHECK_FALSE(is_free(own, begin_of(slot) + 256, 256));
  CHECK_FALSE(own.heap.try_allocate_at(begin_of(slot) + 256, Bytes{64}));
  own.heap.deallocate(slot);
}

TEST_CASE("heap at: zero bytes take an address of their own") {
  OwnHeap own;
  const Block a = own.take(8192);
  const Block none = own.heap.try_allocate_at(begin_of(a) + 8192, Bytes{0});
  REQUIRE(none);
  CHECK_FALSE(own.heap.try_allocate_at(begin_of(a) + 8192, Bytes{0}));
  own.heap.deallocate(a);
  own.heap.deallocate(none);
}
