// SPDX-License-Identifier: Apache-2.0
// The batch that fits is told from iterations with smaller ones. [alloc.replay]
#include "../support/test_settings.h"

#include <ebb/alloc/batch_fit.h>
#include <ebb/alloc/plan.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <vector>

using ebb::AllocationKind;
using ebb::AllocationSequence;
using ebb::BatchFit;
using ebb::BatchFitOptions;
using ebb::BatchSample;
using ebb::Bytes;
using ebb::SequenceEntry;

namespace {

// An allocation of constant + growth * batch bytes.
struct Rule {
  std::size_t constant = 0;
  std::size_t growth = 0;
  std::uint32_t dies = 0;
  AllocationKind kind = AllocationKind::block;
  std::uint8_t align_log2 = 6;
};
using Rules = std::vector<Rule>;

AllocationSequence sequence_of(const Rules& rules, std::size_t batch) {
  AllocationSequence sequence;
  for (const Rule& rule : rules) {
    sequence.push_back({.bytes = Bytes{rule.constant + rule.growth * batch},
                        .place = {"net.cpp", static_cast<std::uint32_t>(10 + sequence.size())},
                        .dies = rule.dies,
                        .kind = rule.kind,
                        .align_log2 = rule.align_log2});
  }
  return sequence;
}

std::vector<BatchSample> samples_of(const Rules& rules,
                                    std::initializer_list<std::size_t> batches) {
  std::vector<BatchSample> samples;
  for (const std::size_t batch : batches) {
    samples.push_back({batch, sequence_of(rules, batch)});
  }
  return samples;
}

Rules random_rules(std::mt19937_64& random, std::size_t count) {
  Rules rules;
  for (std::size_t i = 0; i < count; ++i) {
    Rule rule;
    rule.constant = random() % 3 == 0 ? 0 : random() % 5000;
    rule.growth = random() % 3 == 0 ? 0 : random() % 700;
    rule.dies = static_cast<std::uint32_t>(i + 1 + random() % (count - i));
    if (random() % 8 == 0) {
      rule.kind = AllocationKind::outliving;
    } else if (random() % 8 == 0) {
      rule.align_log2 = 8;
    }
    rules.push_back(rule);
  }
  return rules;
}

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

// What a batch needs, from the rules, by a plan that validate() agrees with.
std::size_t needed(const Rules& rules, std::size_t batch) {
  std::vector<ebb::PlanInterval> intervals;
  std::size_t outside = 0;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    const std::size_t bytes = rule.constant + rule.growth * batch;
    if (rule.kind == AllocationKind::outliving || rule.align_log2 > 6) {
      outside += rounded(bytes, std::max<std::size_t>(std::size_t{1} << rule.align_log2, 64));
    } else {
      intervals.push_back({.id = i,
                           .lower = i,
                           .upper = rule.dies,
                           .size = Bytes{std::max<std::size_t>(bytes, 1)}});
    }
  }
  ebb::PlanOptions options;
  options.nodes = BatchFitOptions{}.nodes;
  const ebb::Plan made = ebb::plan(intervals, ebb::default_align_cpu, options);
  CHECK_FALSE(ebb::validate(intervals, ebb::default_align_cpu, made));
  return made.height.count() + outside;
}

// Returns the message of the std::invalid_argument that call throws.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

void check_refused(const std::vector<BatchSample>& samples, const std::string& why) {
  const std::string scaled = refusal([&] { ebb::scale_sequence(samples, 8); });
  CHECK_MESSAGE(scaled.find(why) != std::string::npos, scaled);
  CHECK(refusal([&] { ebb::largest_batch(samples, Bytes{1 << 20}); }) == scaled);
}

// Lives one after the other, so that a batch needs what the larger has.
Rules two_blocks() {
  return {{.constant = 100, .growth = 1000, .dies = 1}, {.constant = 0, .growth = 640, .dies = 2}};
}

}  // namespace

TEST_CASE("batch fit: a sequence scales to any batch, up and down") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Rules rules = random_rules(random, 30);
    const auto samples = samples_of(rules, {8, 3, 5});
    for (const std::size_t batch : {1u, 2u, 3u, 4u, 8u, 9u, 1000u}) {
      const AllocationSequence scaled = ebb::scale_sequence(samples, batch);
      const AllocationSequence expected = sequence_of(rules, batch);
      REQUIRE(scaled.size() == expected.size());
      for (std::size_t i = 0; i < scaled.size(); ++i) {
        CHECK(scaled[i].repeats(expected[i]));
        CHECK(scaled[i].dies == expected[i].dies);
        CHECK(scaled[i].kind == expected[i].kind);
      }
    }
  }
}

TEST_CASE("batch fit: the answer fits, the next does not, none beyond does") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 60; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Rules rules = random_rules(random, 1 + random() % 12);
    rules[0].growth += 1;
    const std::size_t unit = 1 + random() % 4;
    constexpr std::size_t most = 200;
    std::vector<std::size_t> needs;  // by step, from 1
    for (std::size_t step = 1; step * unit <= most; ++step) {
      needs.push_back(needed(rules, step * unit));
    }
    const std::size_t budget = needs.front() + random() % (needs.back() - needs.front() + 100);
    const auto last = std::find_if(needs.rbegin(), needs.rend(),
                                   [&](std::size_t need) { return need <= budget; });
    const auto best = static_cast<std::size_t>(needs.rend() - last);  // programs this small: exact
    const BatchFit fit = ebb::largest_batch(samples_of(rules, {2, 5}), Bytes{budget},
                                            {.most = most, .multiple_of = unit});
    CHECK(fit.batch == best * unit);
    CHECK(fit.height.count() + fit.outside.count() == needs[best - 1]);
    CHECK(fit.needed_by_next.has_value() == (best < needs.size()));
    if (fit.needed_by_next) {
      CHECK(fit.needed_by_next->count() == needs[best]);
      CHECK(fit.needed_by_next->count() > budget);
    }
  }
}

TEST_CASE("batch fit: with larger programs too, the answer fits and the next does not") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 3; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Rules rules = random_rules(random, 150);
    rules[0].growth += 1;
    const std::size_t budget = needed(rules, 50 + random() % 1000) + random() % 10'000;
    const BatchFit fit = ebb::largest_batch(samples_of(rules, {1, 2}), Bytes{budget});
    CHECK(needed(rules, fit.batch) == fit.height.count() + fit.outside.count());
    CHECK(needed(rules, fit.batch) <= budget);
    CHECK(needed(rules, fit.batch + 1) > budget);
  }
}

TEST_CASE("batch fit: budgets to the byte") {
  const auto samples = samples_of(two_blocks(), {1, 2});
  for (const std::size_t batch : {1u, 2u, 7u, 64u, 1000u}) {
    const std::size_t exactly = rounded(100 + 1000 * batch, 64);
    const BatchFit fit = ebb::largest_batch(samples, Bytes{exactly});
    CHECK(fit.batch == batch);
    CHECK(fit.height == Bytes{exactly});
    CHECK(fit.exact);
    if (batch > 1) {
      CHECK(ebb::largest_batch(samples, Bytes{exactly - 1}).batch == batch - 1);
    }
  }
  const std::string none = refusal([&] { ebb::largest_batch(samples, Bytes{1151}); });
  CHECK(none == "[largest_batch] nothing fits: a batch of 1 needs 1152 bytes, of 1151");
  CHECK_THROWS_AS(ebb::largest_batch(samples, Bytes{0}), std::invalid_argument);
}

TEST_CASE("batch fit: huge budgets and batches end without overflow") {
  const auto samples = samples_of(two_blocks(), {1, 2});
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  const BatchFit usual = ebb::largest_batch(samples, Bytes{all});
  CHECK(usual.batch == std::size_t{1} << 20);
  CHECK_FALSE(usual.needed_by_next);
  const BatchFit endless = ebb::largest_batch(samples, Bytes{all}, {.most = all});
  CHECK(endless.batch > all / 4000);
  CHECK_FALSE(endless.needed_by_next);
  CHECK_THROWS_AS(ebb::scale_sequence(samples, all), std::invalid_argument);
  const auto constant = samples_of({{.constant = 100, .dies = 1}}, {1, 2});
  CHECK(ebb::largest_batch(constant, Bytes{128}, {.most = all}).batch == all);
  CHECK(ebb::largest_batch(samples_of({}, {1, 2}), Bytes{0}, {.most = 7}).batch == 7);
}

TEST_CASE("batch fit: a batch is a multiple of what it should be") {
  const auto samples = samples_of(two_blocks(), {1, 2});
  CHECK(ebb::largest_batch(samples, Bytes{101'000}, {.multiple_of = 8}).batch == 96);
  CHECK(ebb::largest_batch(samples, Bytes{101'000}, {.most = 95, .multiple_of = 8}).batch == 88);
  for (const std::size_t unit : {0u, 9u}) {
    CHECK_THROWS_AS(ebb::largest_batch(samples, Bytes{1 << 20}, {.most = 8, .multiple_of = unit}),
                    std::invalid_argument);
  }
}

TEST_CASE("batch fit: lifetimes are those of the sample where they are longest") {
  auto samples = samples_of(two_blocks(), {1, 2});
  samples[1].sequence[0].dies = 2;
  CHECK(ebb::scale_sequence(samples, 4)[0].dies == 2);
  samples[0].sequence[1].kind = AllocationKind::outliving;
  CHECK(ebb::scale_sequence(samples, 4)[1].kind == AllocationKind::outliving);
  CHECK(ebb::largest_batch(samples, Bytes{1152 + 640}).outside == Bytes{640});
}

TEST_CASE("batch fit: samples that do not tell are refused by entry and place") {
  check_refused({}, "there are 0 samples");
  check_refused(samples_of(two_blocks(), {4}), "there are 1 samples");
  check_refused(samples_of(two_blocks(), {4, 2, 4}), "two samples have a batch of 4");
  check_refused(samples_of(two_blocks(), {0, 2}), "a batch of 0");
  CHECK_THROWS_AS(ebb::scale_sequence(samples_of(two_blocks(), {1, 2}), 0), std::invalid_argument);

  SUBCASE("another number of allocations") {
    auto samples = samples_of(two_blocks(), {2, 4});
    samples[1].sequence.pop_back();
    check_refused(samples, "batches of 2 and 4 do not make the same allocations: 2 and 1");
  }
  SUBCASE("another place") {
    auto samples = samples_of(two_blocks(), {2, 4});
    samples[1].sequence[1].place = {"other.cpp", 3};
    check_refused(samples, "entry 1 (net.cpp:11) of the one is not entry 1 (other.cpp:3)");
  }
  SUBCASE("another alignment, another kind") {
    auto samples = samples_of(two_blocks(), {2, 4, 6});
    samples[1].sequence[1].align_log2 = 8;
    check_refused(samples, "batches of 2 and 4 do not make the same allocations: entry 1");
    samples[1].sequence[1].align_log2 = 6;
    samples[1].sequence[0].kind = AllocationKind::iteration;
    check_refused(samples, "batches of 2 and 4 do not make the same allocations: entry 0");
  }
  SUBCASE("a size that shrinks") {
    auto samples = samples_of(two_blocks(), {2, 4});
    samples[1].sequence[0].bytes = Bytes{2099};
    check_refused(samples, "entry 0 (net.cpp:10) does not grow by a fixed number of bytes");
  }
  SUBCASE("a size that grows by fractions") {
    auto samples = samples_of(two_blocks(), {2, 4});
    samples[1].sequence[1].bytes = Bytes{640 * 4 + 1};
    check_refused(samples, "entry 1 (net.cpp:11) does not grow by a fixed number of bytes");
  }
  SUBCASE("a third sample that tells otherwise") {
    auto samples = samples_of(two_blocks(), {2, 4, 8});
    samples[1].sequence[1].bytes = Bytes{640 * 4 + 64};
    check_refused(samples, "1280 bytes for 2, 2624 for 4");
  }
  SUBCASE("a death before birth, and one past the end") {
    auto samples = samples_of(two_blocks(), {2, 4});
    samples[0].sequence[1].dies = 1;
    check_refused(samples, "entry 1 (net.cpp:11) dies at 1, of 2");
    samples[0].sequence[1].dies = 3;
    check_refused(samples, "entry 1 (net.cpp:11) dies at 3, of 2");
  }
  SUBCASE("sizes and alignments that are none") {
    auto samples = samples_of(two_blocks(), {2, 4});
    samples[1].sequence[1].bytes = Bytes{std::size_t{1} << 63};
    check_refused(samples, "entry 1 (net.cpp:11) has 2^63 bytes or more");
    samples = samples_of({{.constant = 1, .dies = 1, .align_log2 = 64}}, {2, 4});
    check_refused(samples, "entry 0 (net.cpp:10) is aligned to 2^64");
  }
}

TEST_CASE("batch fit: a size that would be negative for a small batch is refused there only") {
  auto samples = samples_of({{.constant = 0, .growth = 100, .dies = 1}}, {4, 8});
  samples[0].sequence[0].bytes = Bytes{100};
  samples[1].sequence[0].bytes = Bytes{500};  // 100 * (batch - 3)
  CHECK(ebb::scale_sequence(samples, 3)[0].bytes == Bytes{0});
  CHECK(refusal([&] {
          ebb::scale_sequence(samples, 2);
        }).find("entry 0 (net.cpp:10) would have less than 0 bytes") != std::string::npos);
  CHECK(ebb::largest_batch(samples, Bytes{128}).batch == 4);
}
