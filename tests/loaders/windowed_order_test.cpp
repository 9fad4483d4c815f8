// SPDX-License-Identifier: Apache-2.0
// Windowed orders: permutations that stay near the file's own order, with and without pages.
#include "order_fixture.h"

#include <ebb/runtime/random.h>

#include <cmath>
#include <map>
#include <set>

using ebb::Order;
using ebb::OrderSpec;
using ebb::test::epoch_of;
using ebb::test::is_permutation;
using ebb::test::printed_seed;
using ebb::test::refusal_of;
using ebb::test::samples_at;

namespace {

std::uint64_t distance(std::uint64_t a, std::uint64_t b) {
  return a < b ? b - a : a - b;
}

double mean_displacement(const std::vector<std::uint64_t>& samples) {
  double sum = 0;
  for (std::size_t position = 0; position < samples.size(); ++position) {
    sum += static_cast<double>(distance(position, samples[position]));
  }
  return sum / static_cast<double>(samples.size());
}

// Of batches of 64, when the samples are sorted into as many labels of equal size.
double mean_label_entropy(const std::vector<std::uint64_t>& samples, std::uint64_t labels) {
  constexpr std::size_t batch = 64;
  double sum = 0;
  const std::size_t batches = samples.size() / batch;
  for (std::size_t first = 0; first + batch <= samples.size(); first += batch) {
    std::map<std::uint64_t, int> counts;
    for (std::size_t i = first; i < first + batch; ++i) {
      ++counts[samples[i] * labels / samples.size()];
    }
    for (const auto& [label, count] : counts) {
      const double share = count / double{batch};
      sum -= share * std::log(share);
    }
  }
  return sum / static_cast<double>(batches);
}

}  // namespace

TEST_CASE("windowed order: each sample once, with its inverse, and none a window away") {
  ebb::Random random(printed_seed(), "windowed");
  for (std::uint64_t size = 1; size <= 200; ++size) {
    const std::uint64_t window = 4 + random.below(size + 8);
    const std::uint64_t page = random.below(3) == 0 ? 1 + random.below(size + 3) : 0;
    const Order order(OrderSpec::windowed({.window = window, .page = page}),
                      {.size = size, .seed = random.next_u64(), .epoch = random.below(3)});
    CAPTURE(size);
    CAPTURE(window);
    CAPTURE(page);
    REQUIRE(is_permutation(order, 1 + random.below(20)));
    if (page == 0) {
      const auto samples = epoch_of(order);
      for (std::uint64_t position = 0; position < size; ++position) {
        REQUIRE(distance(position, samples[position]) < window);
      }
    }
  }
}

TEST_CASE("windowed order: the inverse and the bound hold at large sizes") {
  ebb::Random random(printed_seed(), "large windows");
  for (const std::uint64_t size : {std::uint64_t{10'000'000'000}, std::uint64_t{1} << 40}) {
    for (int round = 0; round < 50; ++round) {
      const std::uint64_t window = 4 + random.below(std::uint64_t{1} << random.below(38));
      const std::uint64_t page = round % 2 == 0 ? 0 : 1 + random.below(window);
      const Order order(OrderSpec::windowed({.window = window, .page = page}),
                        {.size = size, .seed = random.next_u64()});
      const std::uint64_t first = random.below(size - 100);
      const auto samples = samples_at(order, first, 100);
      for (std::uint64_t i = 0; i < samples.size(); ++i) {
        CAPTURE(window);
        CAPTURE(page);
        REQUIRE(order.position_of(samples[i]) == first + i);
        REQUIRE((page != 0 || distance(first + i, samples[i]) < window));
      }
    }
  }
}

// Computed by a second implementation, written in another language from the description.
TEST_CASE("windowed order: the values are those of the format") {
  struct Golden {
    std::uint64_t size, seed, epoch, window, page;
    std::vector<std::uint64_t> first, middle;
  };
  const std::vector<Golden> all = {
      {100, 7, 3, 16, 0, {7, 1, 5, 0}, {44, 56, 45, 52}},
      {100, 7, 3, 16, 5, {17, 56, 15, 55}, {99, 1, 85, 27}},
      {60000, 1, 2, 4096, 0, {962, 352, 532, 203}, {31414, 28717, 29653, 30875}},
      {60000, 1, 2, 4097, 64, {8909, 17622, 54650, 13770}, {14783, 3667, 36003, 16981}},
      {std::uint64_t{1} << 40,
       7,
       3,
       1 << 20,
       1 << 10,
       {566128819244, 533245663114, 1032082551943, 593229607455},
       {147054334737, 964903788881, 446234046786, 964318890676}},
  };
  for (const Golden& golden : all) {
    const Order order(OrderSpec::windowed({.window = golden.window, .page = golden.page}),
                      {.size = golden.size, .seed = golden.seed, .epoch = golden.epoch});
    CAPTURE(golden.size);
    CHECK(samples_at(order, 0, 4) == golden.first);
    CHECK(samples_at(order, golden.size / 2, 4) == golden.middle);
  }
}

TEST_CASE("windowed order: a window that is not less than the data set is a full shuffle") {
  const Order full(ebb::OrderKind::shuffled, 100, 7, 1);
  const auto of_window = [](std::uint64_t window) {
    return epoch_of(
        Order(OrderSpec::windowed({.window = window}), {.size = 100, .seed = 7, .epoch = 1}));
  };
  CHECK(of_window(100) == epoch_of(full));
  CHECK(of_window(99) != epoch_of(full));
}

TEST_CASE("windowed order: samples are 0.27 windows away from their place, as documented") {
  constexpr std::uint64_t window = 1000;
  const Order order(OrderSpec::windowed({.window = window}),
                    {.size = 200'000, .seed = printed_seed()});
  CHECK(mean_displacement(epoch_of(order)) / window == doctest::Approx(0.27).epsilon(0.03));
}

TEST_CASE("windowed order: blocks begin elsewhere every epoch, and one epoch's say nothing of it") {
  const auto spec = OrderSpec::windowed({.window = 100});
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    orders.insert(epoch_of(Order(spec, {.size = 1000, .seed = 3, .epoch = epoch})));
  }
  CHECK(orders.size() == 50);
  // Sample 500 may come next to any sample that is less than a window away.
  std::set<std::uint64_t> neighbours;
  for (std::uint64_t epoch = 0; epoch < 20'000; ++epoch) {
    const Order order(spec, {.size = 1000, .seed = 3, .epoch = epoch});
    neighbours.insert(order.at(order.position_of(500) + 1));
  }
  CHECK(neighbours.size() > 150);
  CHECK(*neighbours.begin() > 400 - 50);
  CHECK(*neighbours.rbegin() < 600 + 50);
}

// Small shards that are sorted by label give batches of few labels. (webdataset#62, #71)
TEST_CASE("windowed order: 64 pages in a window mix the labels of sorted data as a full shuffle") {
  constexpr std::uint64_t size = 100'000;
  constexpr std::uint64_t labels = 10;
  const std::uint64_t seed = printed_seed();
  const auto full = epoch_of(Order(ebb::OrderKind::shuffled, size, seed, 0));
  const double full_entropy = mean_label_entropy(full, labels);
  const auto paged = epoch_of(
      Order(OrderSpec::windowed({.window = 4096, .page = 64}), {.size = size, .seed = seed}));
  CHECK(mean_label_entropy(paged, labels) > 0.95 * full_entropy);
  CHECK(mean_displacement(paged) > 0.95 * mean_displacement(full));
  CHECK(mean_displacement(full) / size == doctest::Approx(1.0 / 3).epsilon(0.02));
  // Without pages it is as the documentation warns.
  const auto bare =
      epoch_of(Order(OrderSpec::windowed({.window = 4096}), {.size = size, .seed = seed}));
  CHECK(mean_label_entropy(bare, labels) < 0.2 * full_entropy);
  // And the file is read in runs: a batch's window holds whole pages, few of which are cut.
  std::set<std::uint64_t> pages;
  for (std::size_t i = 0; i < 4096; ++i) {
    pages.insert(paged[50'000 + i] / 64);
  }
  CHECK(pages.size() <= 2 * 4096 / 64 + 2);
}

TEST_CASE("windowed order: windows that cannot be are refused") {
  CHECK(refusal_of([] { OrderSpec::windowed({.window = 3}); }) ==
        "[OrderSpec::windowed] window is 3: at least 4 samples");
  CHECK(refusal_of([] { OrderSpec::windowed({.window = ~std::uint64_t{0}}); }) == "accepted");
}
