// SPDX-License-Identifier: Apache-2.0
// Bucketed orders: permutations whose batches have samples of about the same length.
#include "order_fixture.h"

#include <ebb/runtime/random.h>

#include <cmath>
#include <set>
#include <stdexcept>

using ebb::Order;
using ebb::OrderSpec;
using ebb::test::epoch_of;
using ebb::test::is_permutation;
using ebb::test::printed_seed;
using ebb::test::refusal_of;
using ebb::test::samples_at;

namespace {

using Lengths = std::vector<std::int64_t>;

Lengths lognormal_lengths(std::size_t count, ebb::Random random) {
  Lengths lengths(count);
  for (std::int64_t& length : lengths) {
    length = 1 + static_cast<std::int64_t>(std::exp(4 + 0.8 * random.normal()));
  }
  return lengths;
}

// Which share of all batches' elements is padding.
double padding_share(const std::vector<std::uint64_t>& samples, const Lengths& lengths,
                     std::size_t batch) {
  double used = 0;
  double all = 0;
  for (std::size_t first = 0; first < samples.size(); first += batch) {
    std::int64_t longest = 0;
    const std::size_t end = std::min(first + batch, samples.size());
    for (std::size_t i = first; i < end; ++i) {
      longest = std::max(longest, lengths[samples[i]]);
      used += static_cast<double>(lengths[samples[i]]);
    }
    all += static_cast<double>(longest) * static_cast<double>(end - first);
  }
  return 1 - used / all;
}

}  // namespace

TEST_CASE("bucketed order: each sample comes once an epoch, and has its position") {
  ebb::Random random(printed_seed(), "bucketed");
  for (std::uint64_t size = 1; size <= 200; size += 1 + random.below(3)) {
    const std::uint64_t batch = 1 + random.below(12);
    const std::uint64_t window = 1 + random.below(8);
    Lengths lengths(size);
    for (std::int64_t& length : lengths) {
      length = static_cast<std::int64_t>(random.below(9));  // many are equal
    }
    CAPTURE(size);
    CAPTURE(batch);
    CAPTURE(window);
    const Order order(OrderSpec::bucketed({.window = window, .lengths = lengths}),
                      {.size = size, .batch = batch, .seed = random.next_u64()});
    REQUIRE(is_permutation(order, batch));
    REQUIRE(epoch_of(order, batch) == epoch_of(order, 1 + random.below(30)));
  }
}

TEST_CASE("bucketed order: at large sizes a batch costs its window only") {
  ebb::Random random(printed_seed(), "large bucketed");
  const auto spec = OrderSpec::bucketed({.window = 16, .length = [](std::uint64_t index) {
                                           return static_cast<std::int64_t>(index * 7 % 1000);
                                         }});
  for (const std::uint64_t size : {std::uint64_t{10'000'000'000}, std::uint64_t{1} << 40}) {
    const Order order(spec, {.size = size, .batch = 32, .seed = random.next_u64()});
    const std::uint64_t first = random.below(size / 32 - 2) * 32;
    const auto samples = samples_at(order, first, 32);
    for (std::uint64_t i = 0; i < 32; ++i) {
      CHECK(order.position_of(samples[i]) == first + i);
    }
    // The window's 512 samples of 1000 lengths, cut into 16 batches, leave about 60 to one.
    CHECK(samples.back() * 7 % 1000 - samples.front() * 7 % 1000 < 200);
    const auto last = samples_at(order, size - 10, 10);
    CHECK(order.position_of(last.back()) == size - 1);
  }
}

// Computed by a second implementation, written in another language from the description.
TEST_CASE("bucketed order: the values are those of the format") {
  Lengths few(50);
  for (std::size_t i = 0; i < few.size(); ++i) {
    few[i] = static_cast<std::int64_t>(i * 37 % 23);
  }
  const Order order(OrderSpec::bucketed({.window = 3, .lengths = few}),
                    {.size = 50, .batch = 4, .seed = 7, .epoch = 3});
  CHECK(epoch_of(order) == std::vector<std::uint64_t>{
                               46, 0,  12, 35, 19, 1,  11, 21, 17, 22, 27, 4,  33, 10, 20, 25, 2,
                               9,  47, 29, 6,  16, 8,  41, 49, 31, 36, 18, 14, 42, 34, 3,  23, 15,
                               45, 37, 5,  28, 38, 43, 32, 24, 39, 26, 48, 30, 7,  40, 44, 13});
  const auto spec = OrderSpec::bucketed({.window = 16, .length = [](std::uint64_t index) {
                                           return static_cast<std::int64_t>(index * index % 1009);
                                         }});
  const Order large(spec, {.size = 60000, .batch = 64, .seed = 1, .epoch = 2});
  CHECK(samples_at(large, 0, 6) ==
        std::vector<std::uint64_t>{58119, 49844, 1673, 56849, 58735, 28465});
  CHECK(samples_at(large, 59904, 4) == std::vector<std::uint64_t>{3276, 33048, 5104, 28193});
  CHECK(samples_at(large, 59998, 2) == std::vector<std::uint64_t>{25603, 22708});
}

TEST_CASE(
    "bucketed order: lognormal lengths need less than a quarter of the padding of a full shuffle") {
  const std::uint64_t seed = printed_seed();
  constexpr std::size_t batch = 32;
  const Lengths lengths = lognormal_lengths(20'000, ebb::Random(seed, "lengths"));
  const ebb::OrderOf of{.size = lengths.size(), .batch = batch, .seed = seed};
  const double shuffled = padding_share(epoch_of(Order(OrderSpec::shuffled(), of)), lengths, batch);
  const double bucketed = padding_share(
      epoch_of(Order(OrderSpec::bucketed({.lengths = lengths}), of), batch), lengths, batch);
  CAPTURE(shuffled);
  CAPTURE(bucketed);
  CHECK(shuffled > 0.5);
  CHECK(bucketed < 0.25 * shuffled);
}

TEST_CASE("bucketed order: batches come in no order of length, and others every epoch") {
  Lengths lengths(6400);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = static_cast<std::int64_t>(i % 640);
  }
  const auto spec = OrderSpec::bucketed({.window = 20, .lengths = lengths});
  const ebb::OrderOf of{.size = 6400, .batch = 32, .seed = printed_seed()};
  const auto samples = epoch_of(Order(spec, of), 32);
  std::size_t longer = 0;
  for (std::size_t first = 32; first < samples.size(); first += 32) {
    longer += lengths[samples[first]] > lengths[samples[first - 32]] ? 1 : 0;
  }
  CHECK(longer > 60);  // of 199
  CHECK(longer < 139);
  ebb::OrderOf next = of;
  next.epoch = 1;
  const auto second = epoch_of(Order(spec, next), 32);
  std::set<std::set<std::uint64_t>> batches;
  for (const auto* epoch : {&samples, &second}) {
    for (std::size_t first = 0; first < epoch->size(); first += 32) {
      const auto begin = epoch->begin() + static_cast<std::ptrdiff_t>(first);
      batches.emplace(begin, begin + 32);
    }
  }
  CHECK(batches.size() == 400);
}

TEST_CASE("bucketed order: one scratch serves the orders of all epochs in turn") {
  Lengths lengths(60);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = static_cast<std::int64_t>(i % 13);
  }
  const auto spec = OrderSpec::bucketed({.window = 2, .lengths = lengths});
  ebb::OrderScratch scratch;
  for (const std::uint64_t first : {0u, 5u, 20u, 5u}) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const Order order(spec, {.size = 60, .batch = 5, .seed = 2, .epoch = epoch});
      std::vector<std::uint64_t> samples(10);
      order.fill(first, samples, scratch);
      CHECK(samples == samples_at(order, first, 10));
    }
  }
}

TEST_CASE("bucketed order: a function of lengths that throws leaves no half window behind") {
  bool fails = true;
  const auto spec = OrderSpec::bucketed({.length = [&fails](std::uint64_t index) {
    if (fails && index == 30) {
      throw std::runtime_error("no length");
    }
    return static_cast<std::int64_t>(index % 9);
  }});
  const Order order(spec, {.size = 100, .batch = 10});
  ebb::OrderScratch scratch;
  std::vector<std::uint64_t> samples(100);
  CHECK_THROWS_WITH_AS(order.fill(0, samples, scratch), "no length", std::runtime_error);
  fails = false;
  order.fill(0, samples, scratch);
  CHECK(samples == epoch_of(order));
}

TEST_CASE("bucketed order: lengths and windows that cannot be are refused") {
  const auto one = [](std::uint64_t) { return std::int64_t{1}; };
  const auto refused = [](const ebb::BucketOptions& options) {
    return refusal_of([&] { OrderSpec::bucketed(options); });
  };
  CHECK(refused({.lengths = {1, 2, -3}}) ==
        "[OrderSpec::bucketed] sample 2 has the length -3: lengths are from 0 to 2^40 - 1");
  CHECK(refused({.lengths = {std::int64_t{1} << 40}}).find("sample 0") != std::string::npos);
  CHECK(refused({.window = 0}) == "[OrderSpec::bucketed] window is 0: at least 1 batch");
  CHECK(refused({.lengths = {1}, .length = one}).find("give one") != std::string::npos);
  const auto order_refused = [](const OrderSpec& spec, const ebb::OrderOf& of) {
    return refusal_of([&] { const Order order(spec, of); });
  };
  const auto two = OrderSpec::bucketed({.lengths = {1, 2}});
  CHECK(order_refused(two, {.size = 3}) ==
        "[Order] there are 2 lengths for the 3 samples of the data set");
  CHECK(order_refused(two, {.size = 2, .batch = 1 << 18})
            .starts_with("[Order] windows of 64 batches of 262144"));
  CHECK(order_refused(OrderSpec::bucketed({}), {.size = 2})
            .starts_with("[Order] a bucketed order has no lengths of its own"));
  CHECK(OrderSpec::bucketed({}).needs_lengths());
  CHECK_FALSE(OrderSpec::bucketed({}).with_lengths(one).needs_lengths());
  const auto odd = OrderSpec::bucketed({.length = [](std::uint64_t) { return std::int64_t{-1}; }});
  const Order order(odd, {.size = 5});
  CHECK(refusal_of([&] { static_cast<void>(order.at(0)); }).starts_with("[Order::fill] sample "));
}
