// SPDX-License-Identifier: Apache-2.0
// The index of holes against a plain sorted set, over random programs. White box.
#include "hole_index.h"

#include "../heap_fixture.h"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

using ebb::detail::HeapRecord;
using ebb::detail::HoleIndex;
using ebb::detail::RecordKind;

namespace {

std::byte* address(std::uint64_t number) {
  return reinterpret_cast<std::byte*>(number << 20);
}

}  // namespace

TEST_CASE("hole index: best fit, next fit, floor and largest agree with a sorted set") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  HoleIndex index;
  std::vector<HeapRecord> records(300);
  std::set<std::pair<std::size_t, std::byte*>> by_size;
  std::vector<bool> in(records.size());
  const auto random_size = [&] { return (1 + random() % (random() % 2 == 0 ? 20 : 5000)) * 64; };
  for (std::uint64_t step = 0; step < ebb::test::stress(20000); ++step) {
    const std::size_t i = random() % records.size();
    HeapRecord& hole = records[i];
    if (!in[i]) {
      hole.data = address(i + 1);
      hole.size = random_size();
      hole.make_hole(0, 0);
      index.insert(hole);
      by_size.emplace(hole.size, hole.begin());
    } else if (random() % 2 == 0) {
      by_size.erase({hole.size, hole.begin()});
      index.resize(hole, address(i + 1) + random() % 1000 * 64, random_size());
      by_size.emplace(hole.size, hole.begin());
      in[i] = false;
    } else {
      index.erase(hole);
      by_size.erase({hole.size, hole.begin()});
    }
    in[i] = !in[i];

    const std::size_t size = random_size();
    const HeapRecord* found = index.of(0).best_fit(size);
    auto expected = by_size.lower_bound({size, nullptr});
    REQUIRE((found == nullptr) == (expected == by_size.end()));
    if (found != nullptr) {
      REQUIRE(found->begin() == expected->second);
      const HeapRecord* next = index.of(0).next_fit(const_cast<HeapRecord&>(*found));
      ++expected;
      REQUIRE((next == nullptr) == (expected == by_size.end()));
      REQUIRE((next == nullptr || next->begin() == expected->second));
    }
    REQUIRE(index.largest() == (by_size.empty() ? 0 : by_size.rbegin()->first));
    const std::uint64_t at = random() % (records.size() + 2);
    const HeapRecord* floor = index.floor(address(at) + 64000);
    std::size_t below = std::min<std::size_t>(at, records.size());
    while (below > 0 && !in[below - 1]) {
      --below;
    }
    REQUIRE(floor == (below == 0 ? nullptr : &records[below - 1]));
    if (step % 64 == 0) {
      REQUIRE(index.is_valid());
    }
  }
}

TEST_CASE("hole index: it tells whether a lane has all holes") {
  HoleIndex index;
  ebb::detail::SizeIndex second;
  index.open(2, second);
  CHECK_FALSE(index.has_others(0));
  std::array<HeapRecord, 2> holes;
  for (std::uint32_t i = 0; i < 2; ++i) {
    holes[i].data = address(i + 1);
    holes[i].size = 64;
    holes[i].make_hole(2 * i, 0);
  }
  index.insert(holes[0]);
  CHECK_FALSE(index.has_others(0));
  CHECK(index.has_others(2));
  index.insert(holes[1]);
  CHECK(index.has_others(0));
  index.erase(holes[0]);
  CHECK_FALSE(index.has_others(2));
}
