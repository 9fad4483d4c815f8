// SPDX-License-Identifier: Apache-2.0
// Weighted orders: draws with replacement, as often as the weights say.
#include "order_fixture.h"

#include <ebb/runtime/random.h>

#include <cmath>
#include <limits>

using ebb::Order;
using ebb::OrderSpec;
using ebb::test::epoch_of;
using ebb::test::printed_seed;
using ebb::test::refusal_of;
using ebb::test::samples_at;

namespace {

// How far the draws are from the weights, in standard deviations of chi-square.
double surprise(const std::vector<double>& weights, std::uint64_t seed, std::uint64_t draws) {
  const Order order(OrderSpec::weighted(weights, draws),
                    {.size = weights.size(), .seed = seed, .epoch = 1});
  std::vector<double> seen(weights.size());
  for (const std::uint64_t sample : epoch_of(order)) {
    seen[sample] += 1;
  }
  double sum = 0;
  for (const double weight : weights) {
    sum += weight;
  }
  double chi_square = 0;
  double freedom = -1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double expected = weights[i] / sum * static_cast<double>(draws);
    if (expected == 0) {
      CHECK(seen[i] == 0);
      continue;
    }
    chi_square += (seen[i] - expected) * (seen[i] - expected) / expected;
    freedom += 1;
  }
  return freedom > 0 ? (chi_square - freedom) / std::sqrt(2 * freedom) : 0;
}

}  // namespace

TEST_CASE("weighted order: samples are drawn as often as their weights say") {
  ebb::Random random(printed_seed(), "weights");
  CHECK(surprise({1, 1, 1, 1}, random.next_u64(), 100'000) < 20);
  CHECK(surprise({0, 1, 0, 3, 0}, random.next_u64(), 100'000) < 20);
  CHECK(surprise({7}, random.next_u64(), 1000) < 20);
  for (int round = 0; round < 30; ++round) {
    std::vector<double> weights(1 + random.below(200));
    for (double& weight : weights) {
      weight = random.below(4) == 0 ? 0 : 0.05 + std::pow(random.uniform(), 4);
    }
    weights[random.below(weights.size())] = 1e3 * random.uniform() + 1;
    CAPTURE(round);
    CAPTURE(weights.size());
    // Rare samples are expected often enough for the distribution to be chi-square's.
    CHECK(surprise(weights, random.next_u64(), 300'000) < 20);
  }
}

TEST_CASE("weighted order: an epoch is a function of seed and epoch, and as long as asked") {
  const std::vector<double> weights = {1, 2, 3, 4};
  const auto epoch = [&](std::uint64_t seed, std::uint64_t number, std::uint64_t samples) {
    return epoch_of(
        Order(OrderSpec::weighted(weights, samples), {.size = 4, .seed = seed, .epoch = number}));
  };
  CHECK(epoch(1, 0, 0).size() == 4);
  CHECK(epoch(1, 0, 1000).size() == 1000);
  CHECK(epoch(1, 0, 1000) == epoch(1, 0, 1000));
  CHECK(epoch(1, 0, 1000) != epoch(1, 1, 1000));
  CHECK(epoch(1, 1, 1000) != epoch(2, 0, 1000));
  const auto longer = epoch(1, 0, 2000);
  CHECK(epoch(1, 0, 1000) == std::vector(longer.begin(), longer.begin() + 1000));
}

// Computed by a second implementation, written in another language from the description.
TEST_CASE("weighted order: the values are those of the format") {
  const std::vector<double> few = {0, 1, 2, 3, 4, 5, 6, 7};
  const Order order(OrderSpec::weighted(few, std::uint64_t{1} << 40),
                    {.size = 8, .seed = 7, .epoch = 3});
  CHECK(samples_at(order, 0, 8) == std::vector<std::uint64_t>{7, 7, 5, 5, 5, 6, 5, 5});
  CHECK(samples_at(order, std::uint64_t{1} << 33, 4) == std::vector<std::uint64_t>{4, 7, 4, 5});
  std::vector<double> many(1000);
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i] = static_cast<double>(i * i % 11);
  }
  CHECK(samples_at(Order(OrderSpec::weighted(many), {.size = 1000, .seed = 1}), 0, 8) ==
        std::vector<std::uint64_t>{475, 312, 278, 210, 613, 153, 392, 192});
}

TEST_CASE("weighted order: weights that cannot be are refused, by number") {
  const auto refused = [](const std::vector<double>& weights) {
    return refusal_of([&] { OrderSpec::weighted(weights); });
  };
  CHECK(refused({1, -1}).starts_with("[OrderSpec::weighted] weight 1 is -1"));
  CHECK(refused({std::numeric_limits<double>::quiet_NaN()}).find("weight 0 is") !=
        std::string::npos);
  CHECK(refused({1, 2, std::numeric_limits<double>::infinity()}).find("weight 2") !=
        std::string::npos);
  CHECK(refused({}).find("the 0 weights add up to 0") != std::string::npos);
  CHECK(refused({0, 0}).find("add up to 0") != std::string::npos);
  CHECK(refused({1e308, 1e308}).find("add up to inf") != std::string::npos);
  const auto spec = OrderSpec::weighted(std::vector<double>{1, 2});
  CHECK(refusal_of([&] { const Order order(spec, {.size = 3}); }) ==
        "[Order] there are 2 weights for the 3 samples of the data set");
  const Order order(spec, {.size = 2});
  CHECK(refusal_of([&] { static_cast<void>(order.position_of(0)); }) ==
        "[Order::position_of] a weighted order has no inverse");
}
