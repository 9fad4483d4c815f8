// SPDX-License-Identifier: Apache-2.0
// Random numbers: published vectors of Philox, the pinned mapping of keys (resumed runs rely on
// it), and the distributions.
// One thread.
#include <ebb/runtime/random.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

using ebb::Random;

namespace {

using Words = std::array<std::uint32_t, 4>;

std::vector<std::uint32_t> first_words(Random random, int count) {
  std::vector<std::uint32_t> words;
  for (int i = 0; i < count; ++i) {
    words.push_back(random.next_u32());
  }
  return words;
}

using WordList = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("philox: gives the known answers of its authors") {
  CHECK(ebb::philox4x32({0, 0, 0, 0}, {0, 0}) ==
        Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(ebb::philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(
      ebb::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
      Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("fnv1a: gives the published hashes") {
  CHECK(ebb::fnv1a("") == 0xcbf29ce484222325u);
  CHECK(ebb::fnv1a("a") == 0xaf63dc4c8601ec8cu);
  CHECK(ebb::fnv1a("foobar") == 0x85944171f73967e8u);
}

// Computed by a separate program from the mapping in random.h.
TEST_CASE("random: the mapping of (seed, epoch, sample, name) to words is pinned") {
  CHECK(first_words(Random(0), 6) ==
        WordList{0x0baf1814, 0xa07b4474, 0x5207165e, 0xdd758dd0, 0x8441ba48, 0x1a09b688});
  CHECK(first_words(Random(42, "weight"), 6) ==
        WordList{0x74534288, 0x97024fd0, 0xac0d75af, 0x16076c61, 0x5de18a00, 0x6f4c54d7});
  CHECK(first_words(Random(42, "weight", 1), 6) ==
        WordList{0xa66d6efb, 0xbaca9c26, 0x7a20a3cc, 0x61cca6a7, 0xcdd54185, 0xadbce0fe});
  CHECK(first_words(Random(42, "weight", 0, 1), 6) ==
        WordList{0x9dee4ed5, 0xdd7312e9, 0x2ca637fa, 0x4d87f606, 0xaa8eebfc, 0x07a07aa5});
  constexpr std::uint64_t last = ~std::uint64_t{0};
  CHECK(
      first_words(
          Random(last, "layer.0.bias", (std::uint64_t{1} << 40) + 7, (std::uint64_t{1} << 50) + 3),
          6) == WordList{0x1f895fbb, 0x88713eec, 0x71480277, 0xa16a22fd, 0x673441fe, 0xb145576a});
}

TEST_CASE("random: the distributions are pinned bit for bit") {
  Random pair(7, "x");
  CHECK(pair.next_u64() == 0x0a79fb438d47f9bdu);
  CHECK(pair.next_u64() == 0x34eed81f4cbbe38bu);

  Random index(7, "below");
  for (std::uint64_t expected : {6u, 2u, 0u, 6u, 7u, 5u, 0u, 6u}) {
    CHECK(index.below(10) == expected);
  }
  constexpr std::uint64_t rejecting =
      (std::uint64_t{1} << 63) + 1;  // half the words are drawn again
  for (std::uint64_t expected :
       {2613949749819689196u, 4002316007248034164u, 2564052555417735668u}) {
    CHECK(index.below(rejecting) == expected);
  }

  Random uniform(7, "uniform");
  for (float expected : {0x1.1752c6p-1F, 0x1.2935p-6F, 0x1.9adc2cp-1F, 0x1.5aa6ep-3F}) {
    CHECK(uniform.uniform() == expected);
  }
  Random normal(7, "normal");
  for (float expected : {0x1.067e8ep+0F, 0x1.66808p+0F, 0x1.4c53bp-2F, 0x1.6fc808p+0F,
                         0x1.2a5dap-1F, -0x1.1b66f4p+1F, 0x1.04b0ep-3F, -0x1.3d17b8p-1F}) {
    CHECK(normal.normal() == expected);
  }
}

TEST_CASE("random: each part of the key makes another stream") {
  std::set<std::vector<std::uint32_t>> streams;
  int made = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
      for (std::uint64_t sample = 0; sample < 8; ++sample) {
        for (const char* name : {"", "a", "b"}) {
          streams.insert(first_words(Random(seed, name, epoch, sample), 2));
          ++made;
        }
      }
    }
  }
  CHECK(static_cast<int>(streams.size()) == made);
}

TEST_CASE("random: a copy continues as its original does") {
  Random a(1, "copy");
  for (int i = 0; i < 3; ++i) {
    a.normal();
  }
  Random b = a;
  for (int i = 0; i < 10; ++i) {
    CHECK(a.normal() == b.normal());
    CHECK(a.next_u64() == b.next_u64());
  }
}

TEST_CASE("random: below stays below and hits every number equally") {
  Random random(3, "counts");
  constexpr std::size_t kinds = 7;
  constexpr int draws = 70000;
  std::array<int, kinds> counts{};
  for (int i = 0; i < draws; ++i) {
    const std::uint64_t x = random.below(kinds);
    REQUIRE(x < kinds);
    ++counts[x];
  }
  // Six degrees of freedom: a fair source stays under 22.5 in 999 of 1000 keys, and this key is
  // fixed.
  double chi2 = 0;
  for (int count : counts) {
    chi2 += (count - 10000.0) * (count - 10000.0) / 10000.0;
  }
  CHECK(chi2 < 22.5);
  CHECK(random.below(1) == 0);
  CHECK(random.below(0) == 0);
}

TEST_CASE("random: uniform lies in [0, 1) and has the moments of its law") {
  Random random(4, "moments");
  constexpr int draws = 100000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = random.uniform();
    REQUIRE(x >= 0);
    REQUIRE(x < 1);
    sum += x;
    squares += x * x;
  }
  CHECK(std::abs(sum / draws - 1.0 / 2) < 0.004);
  CHECK(std::abs(squares / draws - 1.0 / 3) < 0.004);
}

TEST_CASE("random: normal agrees with the textbook formula and its law") {
  Random random(5, "gauss");
  Random words(5, "gauss");
  constexpr int pairs = 50000;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  int within_one = 0;
  for (int i = 0; i < pairs; ++i) {
    const double u = (words.next_u32() + 1.0) / 4294967296.0;
    const double angle = 8 * std::atan(1.0) * (words.next_u32() / 4294967296.0);
    const double radius = std::sqrt(-2 * std::log(u));
    for (double expected : {radius * std::cos(angle), radius * std::sin(angle)}) {
      const double x = random.normal();
      REQUIRE(std::abs(x - expected) <= 1e-7 * std::max(1.0, std::abs(expected)));
      sum += x;
      squares += x * x;
      fourths += x * x * x * x;
      within_one += std::abs(x) < 1 ? 1 : 0;
    }
  }
  constexpr double n = 2.0 * pairs;
  CHECK(std::abs(sum / n) < 0.013);
  CHECK(std::abs(squares / n - 1) < 0.02);
  CHECK(std::abs(fourths / n - 3) < 0.15);
  CHECK(std::abs(within_one / n - 0.6827) < 0.006);
}

TEST_CASE("random: filling gives what single draws would") {
  std::vector<float> values(1001);
  ebb::fill_uniform(values, -2, 3, Random(9, "fill"));
  Random uniform(9, "fill");
  CHECK(std::all_of(values.begin(), values.end(),
                    [&](float x) { return x == uniform.uniform(-2, 3) && x >= -2 && x <= 3; }));
  ebb::fill_normal(values, 10, 0.5F, Random(9, "fill"));
  Random normal(9, "fill");
  CHECK(std::all_of(values.begin(), values.end(),
                    [&](float x) { return x == 10 + 0.5F * normal.normal(); }));
  ebb::fill_normal({}, 0, 1, Random(9));
}
