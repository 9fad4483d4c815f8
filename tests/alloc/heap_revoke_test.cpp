// SPDX-License-Identifier: Apache-2.0
// Blocks whose memory is given up while they live: addresses stay theirs, bytes read as zeros, the
// pages and the budget go back. [gc.policy]
#include "heap_fixture.h"
#include "support/counting_source.h"
#include "support/process_status.h"
#include "support/sanitized.h"

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::begin_of;
using ebb::test::OwnHeap;
using namespace ebb::literals;

namespace {

bool is_zero(const Block& block) {
  return std::all_of(begin_of(block), begin_of(block) + block.bytes.count(),
                     [](std::byte b) { return b == std::byte{0}; });
}

// Whether bytes fewer are resident than before; a sanitizer's own memory hides that.
bool went_back(std::size_t before, std::size_t bytes) {
  return ebb::test::is_sanitized() || ebb::test::self_status_bytes("VmRSS:") + bytes <= before;
}

}  // namespace

TEST_CASE("revoke: a large block's pages go back at once, and its addresses when it is freed") {
  OwnHeap own;
  const Block block = own.take(8 << 20);
  const Block next = own.take(1000);
  ebb::test::fill(block, 1);
  ebb::test::fill(next, 2);
  const std::size_t resident = ebb::test::self_status_bytes("VmRSS:");
  const Bytes reserved = own.heap.stats().reserved;
  const Bytes gone = own.heap.try_revoke(block).value();
  CHECK(gone >= 8_MiB - ebb::system_source().page_size() * 2);
  CHECK(went_back(resident, 7 << 20));
  CHECK(own.heap.stats().reserved + gone == reserved);
  CHECK(own.heap.stats().live >= 8_MiB);
  CHECK(is_zero(block));
  CHECK(ebb::test::holds(next, 2));
  const Block other = own.take(8 << 20);  // never in the same place
  CHECK((other.data >= begin_of(block) + block.bytes.count() ||
         begin_of(other) + other.bytes.count() <= block.data));
  own.heap.deallocate(other);
  own.heap.deallocate(block);
  const Block again = own.take(4 << 20);
  ebb::test::fill(again, 3);
  CHECK(ebb::test::holds(again, 3));
  own.heap.deallocate(again);
  own.heap.deallocate(next);
  own.heap.trim();
  CHECK(own.heap.stats().reserved == Bytes{0});
}

TEST_CASE("revoke: the budget has the bytes back at once, once") {
  OwnHeap own({.limit = 4_MiB});
  const Block block = own.take(3 << 20);
  CHECK_FALSE(own.heap.try_allocate(3_MiB));
  CHECK(own.heap.try_revoke(block).value() > 2_MiB);
  CHECK(own.heap.try_revoke(block).value() == Bytes{0});
  const Block other = own.take(3 << 20);
  CHECK_FALSE(own.heap.try_allocate(3_MiB));
  own.heap.deallocate(block);
  CHECK_FALSE(own.heap.try_allocate(3_MiB));  // its range is free, but the pages are other's
  own.heap.deallocate(other);
  const Block all = own.take((3 << 20) + 1000);
  own.heap.deallocate(all);
}

TEST_CASE("revoke: blocks of every size and place, from any thread, among others that stay whole") {
  const std::uint64_t seed = ebb::test::test_seed();
  CAPTURE(seed);
  MESSAGE("seed ", seed);
  std::mt19937_64 random(seed);
  ebb::test::CountingSource source(ebb::system_source());
  {
    OwnHeap own(source);
    struct Live {
      Block block;
      std::uint64_t number;  // 0: revoked
    };
    std::vector<Live> live;
    for (std::uint64_t step = 1; step <= 800; ++step) {
      if (live.size() < 60 && random() % 3 != 0) {
        const std::size_t bytes = random() % (std::size_t{1} << (random() % 18));
        live.push_back({own.take(bytes), step});
        ebb::test::fill(live.back().block, step);
      } else if (!live.empty()) {
        const std::size_t at = random() % live.size();
        if (random() % 2 == 0) {
          std::jthread([&] { CHECK(own.heap.try_revoke(live[at].block).has_value()); });
          live[at].number = 0;
        } else {
          if (random() % 2 == 0) {
            own.heap.deallocate(live[at].block);
          } else {
            std::jthread([&] { own.heap.deallocate(live[at].block); });
          }
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
        }
      }
      for (const Live& l : live) {
        REQUIRE((l.number == 0 ? is_zero(l.block) : ebb::test::holds(l.block, l.number)));
      }
    }
    for (const Live& l : live) {
      own.heap.deallocate(l.block);
    }
    own.heap.trim();
    CHECK(own.heap.stats().reserved == Bytes{0});
  }
  CHECK(source.counts().reserved == Bytes{0});
}

TEST_CASE("revoke: what was written after it does not stay behind") {
  OwnHeap own;
  const Block block = own.take(1 << 20);
  CHECK(own.heap.try_revoke(block).has_value());
  ebb::test::fill(block, 7);  // a mistake of the user's, by a raw pointer
  const std::size_t resident = ebb::test::self_status_bytes("VmRSS:");
  own.heap.deallocate(block);
  CHECK(went_back(resident, 1 << 19));
}

TEST_CASE("revoke: a bypassed block is zeroed; a block that outlives its pool as well") {
  OwnHeap bypass({.bypass = true});
  const Block direct = bypass.take(100000);
  ebb::test::fill(direct, 1);
  CHECK(bypass.heap.try_revoke(direct) == Bytes{0});
  CHECK(is_zero(direct));
  bypass.heap.deallocate(direct);

  Block orphan;
  ebb::Resource* heap = nullptr;
  {
    OwnHeap own;
    orphan = own.take(1 << 20);
    heap = &own.heap;
  }
  ebb::test::fill(orphan, 1);
  CHECK(heap->try_revoke(orphan).has_value());
  CHECK(is_zero(orphan));
  heap->deallocate(orphan);
}
