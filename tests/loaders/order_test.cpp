// SPDX-License-Identifier: Apache-2.0
// Orders are bijections with an exact inverse, and their values are part of the format.
#include "order_fixture.h"

#include <ebb/runtime/random.h>

#include <chrono>
#include <cmath>
#include <set>

using ebb::Order;
using ebb::OrderKind;
using ebb::OrderSpec;
using ebb::Permutation;
using ebb::test::printed_seed;

namespace {

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
  ebb::Random random(printed_seed());
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
  ebb::Random random(printed_seed(), "large");
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

// Samplers that build a list of all samples. (pytorch#50201, #50689, #11691)
TEST_CASE("order: ten thousand million samples cost no memory and no time") {
  static_assert(sizeof(Order) < 1024);
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t sum = 0;
  for (std::uint64_t epoch = 0; epoch < 1000; ++epoch) {
    const std::uint64_t size = 10'000'000'000;
    for (const OrderSpec& spec : {OrderSpec::sequential(), OrderSpec::shuffled(),
                                  OrderSpec::windowed({.window = 1 << 20, .page = 1 << 10})}) {
      const Order order(spec, {.size = size, .seed = 1, .epoch = epoch});
      CHECK(order.size() == size);
      sum += order.at(size / 10 * 9);
    }
  }
  CHECK(sum > 0);
  // A thousand times three of them, at less than 1 ms each even where a sanitizer watches.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
}

TEST_CASE("order: what is past the end of an epoch is its begin again") {
  const std::vector<double> weights(20, 1.0);
  const std::vector<std::int64_t> lengths(20, 3);
  for (const OrderSpec& spec :
       {OrderSpec::sequential(), OrderSpec::shuffled(), OrderSpec::windowed({.window = 8}),
        OrderSpec::weighted(weights), OrderSpec::bucketed({.window = 2, .lengths = lengths})}) {
    const Order order(spec, {.size = 20, .batch = 3, .seed = 5});
    auto twice = ebb::test::epoch_of(order);
    twice.insert(twice.end(), twice.begin(), twice.begin() + 20);
    CAPTURE(spec.describe());
    CHECK(ebb::test::samples_at(order, 0, 40, 40) == twice);
    CHECK(ebb::test::samples_at(order, 0, 40, 7) == twice);
  }
}

TEST_CASE("order: ids tell kinds and parameters apart, and stay") {
  CHECK(OrderSpec::sequential().id() == 0);
  CHECK(OrderSpec::shuffled().id() == 1);
  const std::vector<double> weights = {1, 2};
  const std::vector<double> others = {2, 1};
  const std::vector<OrderSpec> specs = {
      OrderSpec::sequential(),
      OrderSpec::shuffled(),
      OrderSpec::windowed({.window = 8}),
      OrderSpec::windowed({.window = 9}),
      OrderSpec::windowed({.window = 8, .page = 2}),
      OrderSpec::weighted(weights),
      OrderSpec::weighted(others),
      OrderSpec::weighted(weights, 3),
      OrderSpec::bucketed({.lengths = {1, 2}}),
      OrderSpec::bucketed({.lengths = {2, 1}}),
      OrderSpec::bucketed({.window = 3, .lengths = {1, 2}}),
      OrderSpec::bucketed({}),
  };
  std::set<std::uint64_t> ids;
  for (const OrderSpec& spec : specs) {
    ids.insert(spec.id());
    CHECK((spec.id() & 0xff) == static_cast<std::uint64_t>(spec.kind()));
    CHECK(spec.describe().starts_with(to_string(spec.kind())));
    CHECK(ebb::describe_order(spec.id()).starts_with(to_string(spec.kind())));
  }
  CHECK(ids.size() == specs.size());
  CHECK(OrderSpec::weighted(weights).id() == OrderSpec::weighted(weights, 2).id());
  CHECK(specs[4].describe() == "windowed (window 8, page 2)");
  CHECK(ebb::describe_order(1) == "shuffled");
  CHECK(ebb::describe_order(77) == "unknown (id 77)");
  // Saved states hold them.
  CHECK(specs[2].id() == 14014072657787258370u);
  CHECK(specs[5].id() == 8716652303701570819u);
  CHECK(specs[8].id() == 7349030159306029828u);
}

TEST_CASE("order: only kinds without parameters are made of their kind alone") {
  CHECK(ebb::test::refusal_of([] { const Order order(OrderKind::weighted, 10, 0, 0); }) ==
        "[Order] a weighted order needs its OrderSpec");
  CHECK(ebb::test::refusal_of([] {
          const Order order(OrderKind::sequential, (std::uint64_t{1} << 40) + 1, 0, 0);
        }).starts_with("[Order] an epoch of 1099511627777 of 1099511627777 samples"));
}
