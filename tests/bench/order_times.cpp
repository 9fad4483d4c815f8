// SPDX-License-Identifier: Apache-2.0
// Times of orders. Single-threaded.
#include "order_times.h"

#include <ebb/loaders/order.h>
#include <ebb/runtime/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace ebb::bench {

namespace {

constexpr std::size_t batch = 64;
constexpr int batches = 40'000;
constexpr std::uint64_t table_size = 1'000'000;

// No name is a number: it would become the index of a JSON array.
const std::vector<std::pair<std::string, std::uint64_t>> sizes = {
    {"6e4", 60'000},
    {"1e6", table_size},
    {"1e8", 100'000'000},
    {"1e10", 10'000'000'000},
    {"2^40", std::uint64_t{1} << 40},
};

// Returns nanoseconds for each index of batches that are filled in order, from the middle on.
double index_ns(const OrderSpec& spec, std::uint64_t size, const Effort& effort) {
  const Order order(spec, {.size = size, .batch = batch, .seed = 1});
  const std::uint64_t first = size / 2 / batch;
  const std::uint64_t whole = size / batch;
  std::array<std::uint64_t, batch> indices{};
  OrderScratch scratch;
  const auto fill = [&](int i) {
    order.fill((first + static_cast<std::uint64_t>(i)) % whole * batch, indices, scratch);
    keep_alive(indices);
  };
  return nanoseconds_per_call(effort.calls(batches), fill) / batch;
}

// Returns nanoseconds from nothing to the first index at a share of the epoch.
double first_index_ns(const OrderSpec& spec, std::uint64_t size, std::uint64_t position,
                      const Effort& effort) {
  return nanoseconds_per_call(effort.calls(batches), [&](int i) {
    const Order order(spec, {.size = size, .batch = batch, .epoch = static_cast<std::uint64_t>(i)});
    keep_alive(order.at(position));
  });
}

std::vector<double> some_weights() {
  std::vector<double> weights(table_size);
  Random random(1, "weights");
  for (double& weight : weights) {
    weight = random.uniform();
  }
  return weights;
}

std::vector<std::int64_t> some_lengths() {
  std::vector<std::int64_t> lengths(table_size);
  Random random(1, "lengths");
  for (std::int64_t& length : lengths) {
    length = 1 + static_cast<std::int64_t>(std::exp(4 + 0.8 * random.normal()));
  }
  return lengths;
}

}  // namespace

Figures measure_orders(const Effort& effort) {
  Figures figures;
  const auto shuffled = OrderSpec::shuffled();
  for (const auto& [name, size] : sizes) {
    figures["shuffled_ns/" + name] = index_ns(shuffled, size, effort);
    figures["windowed_ns/" + name] = index_ns(OrderSpec::windowed({}), size, effort);
    figures["first_index_ns/" + name] = first_index_ns(shuffled, size, 0, effort);
  }
  figures["sequential_ns"] = index_ns(OrderSpec::sequential(), table_size, effort);
  figures["paged_ns"] =
      index_ns(OrderSpec::windowed({.window = 8192, .page = 128}), table_size, effort);
  figures["weighted_ns"] = index_ns(OrderSpec::weighted(some_weights()), table_size, effort);
  figures["bucketed_ns"] =
      index_ns(OrderSpec::bucketed({.lengths = some_lengths()}), table_size, effort);
  figures["resume_ns"] = first_index_ns(shuffled, 100'000'000, 90'000'000, effort);
  figures["order_bytes"] = sizeof(Order);
  return figures;
}

Figures measure_shuffled_list(const Effort& effort) {
  Figures figures;
  for (const auto& [name, size] : sizes) {
    if (size > 100'000'000 || (effort.quick && size > table_size)) {
      continue;
    }
    std::vector<std::uint64_t> list(size);
    std::mt19937_64 random(1);
    const double all = nanoseconds_per_call(1, [&](int) {
      std::iota(list.begin(), list.end(), std::uint64_t{0});
      std::shuffle(list.begin(), list.end(), random);
      keep_alive(list);
    });
    figures["shuffled_ns/" + name] = all / static_cast<double>(size);
    figures["first_index_ns/" + name] = all;
  }
  return figures;
}

}  // namespace ebb::bench
