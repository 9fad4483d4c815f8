// SPDX-License-Identifier: Apache-2.0
// Random programs against a shadow map: no two live blocks overlap, contents stay, and is_free
// agrees. EBB_TEST_SEED repeats a run. [alloc.heap]
#include "heap_fixture.h"
#include "support/counting_source.h"

#include <ebb/alloc/pool.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::begin_of;

namespace {

class Program {
 public:
  Program(ebb::Source& source, ebb::PoolOptions options, std::uint64_t seed)
      : own_(source, std::move(options)), random_(seed) {}

  void run(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      step();
    }
    while (!live_.empty()) {
      free_one();
    }
    own_.heap.drain();  // the last steps may have freed elsewhere
    CHECK(own_.heap.stats().live == Bytes{0});
    own_.heap.trim();
    CHECK(own_.heap.stats().reserved == Bytes{0});
    CHECK(placed_ > 0);
  }

 private:
  struct Live {
    Block block;
    std::uint64_t number;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  std::size_t random_size() {
    switch (below(8)) {
      case 0:
        return below(3);
      case 1:
      case 2:
      case 3:
        return below(4200);
      case 7:
        return below(400000);
      default:
        return below(30000);
    }
  }

  void step() {
    const std::uint64_t what = below(100);
    if (what < 45) {
      const std::size_t align = std::size_t{1} << (below(10) == 0 ? below(14) : 6);
      add(own_.heap.try_allocate(Bytes{random_size()}, ebb::Align{align}));
    } else if (what < 55 && !live_.empty()) {
      add_at(random_address(), random_size());
    } else if (what < 60) {
      check_is_free(random_address(), 1 + random_size());
    } else if (what < 97) {
      free_one();
    } else if (what < 99) {
      free_some_elsewhere();
    } else if (below(2) == 0) {
      own_.heap.trim();
    } else {
      own_.heap.drain();
    }
  }

  std::byte* random_address() {
    if (live_.empty()) {
      return nullptr;
    }
    auto it =
        live_.lower_bound(begin_of(std::next(live_.begin(), 0)->second.block) + below(1 << 21));
    std::byte* base = it == live_.end() ? live_.begin()->first : it->first;
    return base + (below(4096) << 6);
  }

  bool overlaps(const std::byte* begin, std::size_t bytes) const {
    auto next = live_.upper_bound(const_cast<std::byte*>(begin));
    if (next != live_.end() && next->first < begin + bytes) {
      return true;
    }
    return next != live_.begin() &&
           std::prev(next)->first + std::prev(next)->second.block.bytes.count() > begin;
  }

  void add(const Block& block) {
    if (!block) {
      return;
    }
    // Rounded to 64 as the heap does, so that zero-sized blocks count too.
    const std::size_t bytes = std::max<std::size_t>(block.bytes.count(), 1);
    REQUIRE_FALSE(overlaps(begin_of(block), bytes));
    REQUIRE(live_.emplace(begin_of(block), Live{block, ++number_}).second);
    ebb::test::fill(block, number_);
  }

  void add_at(std::byte* address, std::size_t bytes) {
    const bool taken = overlaps(address, std::max<std::size_t>(bytes, 1));
    const bool free = own_.heap.is_free({address, Bytes{std::max<std::size_t>(bytes, 1)}});
    const Block block = own_.heap.try_allocate_at(address, Bytes{bytes});
    if (block) {
      REQUIRE_FALSE(taken);
      REQUIRE(free);
      REQUIRE(block.data == address);
      ++placed_;
    }
    add(block);
  }

  void check_is_free(std::byte* address, std::size_t bytes) {
    if (address != nullptr && overlaps(address, bytes)) {
      REQUIRE_FALSE(own_.heap.is_free({address, Bytes{bytes}}));
    }
  }

  Block take_out() {
    auto it = std::next(live_.begin(), static_cast<std::ptrdiff_t>(below(live_.size())));
    const Live live = it->second;
    REQUIRE(ebb::test::holds(live.block, live.number));
    live_.erase(it);
    return live.block;
  }

  void free_one() {
    if (!live_.empty()) {
      own_.heap.deallocate(take_out());
    }
  }

  void free_some_elsewhere() {
    std::vector<Block> blocks;
    for (int i = 0; i < 5 && !live_.empty(); ++i) {
      blocks.push_back(take_out());
    }
    std::jthread([&] {
      for (const Block& block : blocks) {
        own_.heap.deallocate(block);
      }
    }).join();
  }

  ebb::test::OwnHeap own_;
  std::mt19937_64 random_;
  std::map<std::byte*, Live> live_;
  std::uint64_t number_ = 0;
  std::uint64_t placed_ = 0;
};

void run(const std::string& what, ebb::PoolOptions options) {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE(what, ": EBB_TEST_SEED=", seed);
  ebb::test::CountingSource source(ebb::system_source());
  Program(source, std::move(options), seed).run(ebb::test::stress(20000));
  CHECK(source.counts().reserved == Bytes{0});
}

}  // namespace

TEST_CASE("heap property: one large region") {
  run("one large region", {});
}

TEST_CASE("heap property: many small regions") {
  run("many small regions", {.reservation = Bytes{1 << 20}});
}

TEST_CASE("heap property: under a limit") {
  run("under a limit", {.limit = Bytes{2 << 20}, .reservation = Bytes{4 << 20}});
}
