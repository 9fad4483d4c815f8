// SPDX-License-Identifier: Apache-2.0
// The map from addresses against the standard's, and its heap calls. [alloc.resource]
#include "heap_fixture.h"
#include "support/malloc_interposer.h"

#include <ebb/alloc/address_map.h>

#include <map>
#include <random>
#include <vector>

using ebb::AddressMap;

namespace {

// Addresses as a heap gives them: multiples of 64, next to each other or 2 MiB apart.
const void* address(std::uint64_t n) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never followed
  return reinterpret_cast<const void*>(0x7f0000000000U + n % 512 * 64 + n / 512 * (2U << 20U));
}

}  // namespace

TEST_CASE("address map: an empty one finds nothing") {
  AddressMap<int> map;
  CHECK(map.size() == 0);
  CHECK(map.find(&map) == nullptr);
  CHECK(map.take(&map) == nullptr);
  CHECK(map.find(nullptr) == nullptr);
}

TEST_CASE("address map: it agrees with std::map through a random program") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  AddressMap<const void> map;
  std::map<const void*, const void*> expected;
  for (std::uint64_t step = 0; step < 50000; ++step) {
    const void* key = address(random() % 3000);
    const auto found = expected.find(key);
    if (found == expected.end()) {
      CHECK(map.find(key) == nullptr);
      if (random() % 2 == 0) {
        REQUIRE(map.make_room());
        map.insert(key, address(step));
        expected[key] = address(step);
      }
    } else if (random() % 2 == 0) {
      CHECK(map.take(key) == found->second);
      expected.erase(found);
    } else {
      CHECK(map.find(key) == found->second);
    }
    REQUIRE(map.size() == expected.size());
  }
  std::size_t visited = 0;
  map.for_each([&](const void* key, const void* value) {
    ++visited;
    CHECK(expected.at(key) == value);
  });
  CHECK(visited == expected.size());
}

TEST_CASE("address map: it never shrinks, and calls the heap only to grow") {
  AddressMap<const void> map;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    REQUIRE(map.make_room());
    map.insert(address(n), &map);
  }
  const std::size_t capacity = map.capacity();
  CHECK(capacity * 3 >= map.size() * 4);
  const auto before = ebb::test::heap_calls_of_this_thread();
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (std::uint64_t n = 0; n < 1000; ++n) {
      CHECK(map.take(address(n + round * 1000)) == &map);
      REQUIRE(map.make_room());
      map.insert(address(n + round * 1000 + 1000), &map);
    }
  }
  const auto after = ebb::test::heap_calls_of_this_thread();
  CHECK(after.allocations == before.allocations);
  CHECK(map.capacity() == capacity);
}
