// SPDX-License-Identifier: Apache-2.0
// Orders are bijections with an exact inverse, and their values are part of the format.
#include <ebb/loaders/order.h>
#include <ebb/runtime/random.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <vector>

using ebb::Order;
using ebb::OrderKind;
using ebb::Permutation;

namespace {

std::uint64_t seed_of_run() {
  const char* const text = std::getenv("EBB_TEST_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  MESSAGE("EBB_TEST_SEED=" << seed);
  return seed;
}

bool is_bijection(const Permutation& permutation) {
  std::vector<bool> seen(permutation.size());
  for (std::uint64_t position = 0; position < permutation.size(); ++position) {
    const std::uint64_t value = permutation.at(position);
    if (value >= permutation.size() || seen[value] || permutation.position_of(value) != position) {
      return false;
    }
    seen[value] = true;
  }
  return true;
}

}  // namespace

TEST_CASE("order: a permutation of every small size has each value once, and an inverse") {
  ebb::Random random(seed_of_run());
  for (std::uint64_t size = 1; size <= 600; ++size) {
    CAPTURE(size);
    REQUIRE(is_bijection(Permutation(size, random.next_u64())));
  }
  for (const std::uint64_t size : {4095u, 4096u, 4097u, 60000u, 65535u, 65536u, 65537u, 262145u}) {
    CAPTURE(size);
    REQUIRE(is_bijection(Permutation(size, random.next_u64())));
  }
}

TEST_CASE("order: the inverse is exact at sizes up to 2^40") {
  ebb::Random random(seed_of_run(), "large");
  const std::uint64_t largest = std::uint64_t{1} << 40;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t size = round < 4 ? largest - static_cast<std::uint64_t>(round)
                                         : largest >> random.below(20) | random.below(1000);
    const std::uint64_t clipped = std::min(size, largest);
    const Permutation permutation(clipped, random.next_u64());
    for (int draw = 0; draw < 50; ++draw) {
      const std::uint64_t position = random.below(clipped);
      const std::uint64_t value = permutation.at(position);
      CAPTURE(clipped);
      REQUIRE(value < clipped);
      REQUIRE(permutation.position_of(value) == position);
    }
  }
  CHECK_THROWS_AS(Permutation(largest + 1, 0), std::invalid_argument);
}

// Computed by a second implementation, written in another language from the description.
TEST_CASE("order: the values are those of the format") {
  struct Golden {
    std::uint64_t size, seed, epoch;
    std::vector<std::uint64_t> first;
  };
  const std::vector<Golden> all = {
      {3, 7, 3, {0, 2, 1}},
      {10, 0, 0, {5, 9, 2, 6, 4, 7, 3, 0}},
      {10, 0, 1, {5, 7, 2, 4, 9, 1, 0, 8}},
      {10, 1, 0, {4, 9, 1, 0, 8, 2, 6, 7}},
      {64, ~std::uint64_t{0}, ~std::uint64_t{0}, {35, 29, 38, 21, 12, 43, 51, 59}},
      {60000, 1, 2, {20196, 22453, 22966, 49253, 12528, 57773, 15192, 27930}},
      {std::uint64_t{1} << 40,
       7,
       3,
       {311205465999, 887964132272, 544188463636, 796041351208, 713129420038, 466870235093,
        52760776033, 978307330864}},
  };
  for (const Golden& golden : all) {
    const Order order(OrderKind::shuffled, golden.size, golden.seed, golden.epoch);
    for (std::size_t i = 0; i < golden.first.size(); ++i) {
      CAPTURE(golden.size);
      CHECK(order.at(i) == golden.first[i]);
    }
  }
}

TEST_CASE("order: seed and epoch are not added up") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Order a(OrderKind::shuffled, 1000, seed, 1);
    const Order b(OrderKind::shuffled, 1000, seed + 1, 0);
    int equal = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      equal += a.at(i) == b.at(i) ? 1 : 0;
    }
    CHECK(equal < 20);  // one is expected
  }
}

TEST_CASE("order: sequential is the data set's own order in every epoch") {
  const Order order(OrderKind::sequential, 50, 3, 9);
  for (std::uint64_t i = 0; i < 50; ++i) {
    CHECK(order.at(i) == i);
    CHECK(order.position_of(i) == i);
  }
}

TEST_CASE("order: over many seeds each value comes equally often at each position") {
  constexpr std::uint64_t size = 7;
  constexpr int seeds = 20000;
  std::vector<double> seen(size * size);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Order order(OrderKind::shuffled, size, seed, 0);
    for (std::uint64_t i = 0; i < size; ++i) {
      seen[i * size + order.at(i)] += 1;
    }
  }
  const double expected = double{seeds} / size;
  double chi_square = 0;
  for (const double count : seen) {
    chi_square += (count - expected) * (count - expected) / expected;
  }
  CHECK(chi_square < 80);  // 36 degrees of freedom: one fair set in 30,000 is above
}

TEST_CASE("order: neighbours are unrelated") {
  constexpr std::uint64_t size = 60000;
  const Order order(OrderKind::shuffled, size, 1, 0);
  const double mean = (size - 1) / 2.0;
  double product = 0;
  double square = 0;
  for (std::uint64_t i = 0; i + 1 < size; ++i) {
    const double a = static_cast<double>(order.at(i)) - mean;
    const double b = static_cast<double>(order.at(i + 1)) - mean;
    product += a * b;
    square += a * a;
  }
  CHECK(std::abs(product / square) < 0.02);  // five standard deviations
}
