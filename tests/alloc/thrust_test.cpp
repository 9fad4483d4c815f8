// SPDX-License-Identifier: Apache-2.0
// Thrust's temporary memory from a heap, by its CPU backend. The default backend's form of the same
// is compiled by nvcc (tests/headers). [alloc.resource]
#include "heap_fixture.h"

#include <ebb/alloc/guard.h>
#include <ebb/alloc/raw_resource.h>
#include <ebb/alloc/stats_adaptor.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/system/cpp/execution_policy.h>

TEST_CASE("thrust: algorithms take their temporary memory from a raw resource") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  ebb::test::OwnHeap own;
  ebb::Stats stats(own.heap);
  ebb::Guard guard(stats);
  ebb::RawResource raw(guard);
  std::vector<std::uint32_t> values(10000);
  for (std::uint32_t& value : values) {
    value = static_cast<std::uint32_t>(random() % 100);
  }
  std::vector<std::uint32_t> expected = values;
  std::stable_sort(expected.begin(), expected.end());

  thrust::stable_sort(thrust::cpp::par(raw), values.begin(), values.end());
  CHECK(values == expected);
  const std::uint64_t sorting = stats.figures().blocks.total;
  CHECK(sorting >= 1);
  CHECK(stats.figures().bytes.peak >= 40000);
  CHECK(raw.blocks_live() == 0);

  std::vector<std::uint32_t> keys(100);
  std::vector<std::uint32_t> sums(100);
  std::vector<std::uint32_t> weights(values.size());
  for (std::uint32_t& weight : weights) {
    weight = static_cast<std::uint32_t>(random() % 1000);
  }
  // By key, and by a comparison: other ways through Thrust.
  thrust::stable_sort_by_key(thrust::cpp::par(raw), values.begin(), values.end(), weights.begin(),
                             [](std::uint32_t a, std::uint32_t b) { return a > b; });
  const auto ends = thrust::reduce_by_key(thrust::cpp::par(raw), values.begin(), values.end(),
                                          weights.begin(), keys.begin(), sums.begin());
  CHECK(ends.first - keys.begin() == 100);
  CHECK(keys[0] == 99);
  CHECK(stats.figures().blocks.total > sorting);
  CHECK(raw.blocks_live() == 0);
  guard.flush();
  CHECK(stats.figures().blocks.current == 0);
}
