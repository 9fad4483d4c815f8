// SPDX-License-Identifier: Apache-2.0
// Samples that vary in length: batches as long as their longest, filled up with the pad value.
#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>

using ebb::DType;
using ebb::Loader;
using ebb::LoadError;
using ebb::test::contains;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

// Sample i has length i * 7 % 13: "text" is i everywhere, "pairs" has twice as many numbers.
struct Words {
  struct Local {};
  std::uint64_t longest = 12;

  std::uint64_t size() const { return 100; }
  std::uint64_t fingerprint() const { return 5; }
  ebb::Schema schema() const {
    const auto most = static_cast<std::int64_t>(longest);
    return {
        {{.name = "text", .dtype = DType::i32, .sample_shape = {most}, .varies = true, .pad = -1},
         {.name = "label", .dtype = DType::i64},
         {.name = "pairs",
          .dtype = DType::f16,
          .sample_shape = {most, 2},
          .varies = true,
          .pad = 0.5}}};
  }
  std::int64_t length(std::uint64_t index) const {
    return static_cast<std::int64_t>(index * 7 % 13);
  }
  void load(std::uint64_t index, Local&, const ebb::SampleContext&, ebb::SampleWriter& out) const {
    const auto text = out.field<std::int32_t>(0);
    CHECK(text.size() == static_cast<std::size_t>(length(index)));
    std::fill(text.begin(), text.end(), static_cast<std::int32_t>(index));
    out.field<std::int64_t>(1)[0] = static_cast<std::int64_t>(index);
    const auto pairs = out.field<ebb::Half>(2);
    CHECK(pairs.size() == 2 * text.size());
    std::fill(pairs.begin(), pairs.end(), ebb::Half(2.0f));
  }
};

void check_batch(const ebb::Batch& batch, std::int64_t unit, std::int64_t most) {
  const Words words;
  std::int64_t longest = 0;
  for (const std::uint64_t index : batch.indices()) {
    longest = std::max(longest, words.length(index));
  }
  longest = std::min((longest + unit - 1) / unit * unit, most);
  CHECK(batch.length() == longest);
  const auto [text, label, pairs] = batch.fields<3>();
  CHECK(text.shape() == ebb::Shape{batch.size(), longest});
  CHECK(label.shape() == ebb::Shape{batch.size()});
  CHECK(pairs.shape() == ebb::Shape{batch.size(), longest, 2});
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const std::uint64_t index = batch.indices()[static_cast<std::size_t>(row)];
    CHECK(label.span<const std::int64_t>()[static_cast<std::size_t>(row)] ==
          static_cast<std::int64_t>(index));
    for (std::int64_t i = 0; i < longest; ++i) {
      const bool is_inside = i < words.length(index);
      const auto at = static_cast<std::size_t>(row * longest + i);
      REQUIRE(text.span<const std::int32_t>()[at] ==
              (is_inside ? static_cast<std::int32_t>(index) : -1));
      REQUIRE(static_cast<float>(pairs.span<const ebb::Half>()[2 * at + 1]) ==
              (is_inside ? 2.0f : 0.5f));
    }
  }
}

}  // namespace

TEST_CASE("loader lengths: a batch is as long as its longest sample") {
  Rig rig;
  for (const unsigned workers : {0u, 3u}) {
    for (const std::int64_t unit : {std::int64_t{1}, std::int64_t{5}}) {
      Loader loader(rig.rt, Words{}, {.batch = 3, .workers = workers, .pad_to_multiple = unit});
      std::int64_t samples = 0;
      while (const auto batch = loader.next()) {
        check_batch(*batch, unit, 12);
        samples += batch->size();
      }
      CHECK(samples == 100);
    }
  }
}

TEST_CASE("loader lengths: one that the schema has no room for is an error at its batch") {
  Rig rig;
  Loader loader(rig.rt, Words{.longest = 11}, {.batch = 10, .shuffle = false});
  std::string text;
  try {
    while (loader.next()) {
    }
  } catch (const LoadError& error) {
    text = error.what();
    CHECK(error.kind() == ebb::LoadErrorKind::shape);
  }
  CHECK(contains(text, "sample 11"));
  CHECK(contains(text, "the length is 12: the schema has room for 11"));
}

TEST_CASE("loader lengths: fields that vary need lengths") {
  struct NoLengths {
    struct Local {};
    std::uint64_t size() const { return 1; }
    std::uint64_t fingerprint() const { return 5; }
    ebb::Schema schema() const {
      return {{{.name = "x", .dtype = DType::f32, .sample_shape = {3}, .varies = true}}};
    }
    void load(std::uint64_t, Local&, const ebb::SampleContext&, ebb::SampleWriter&) const {}
  };
  Rig rig;
  CHECK_THROWS_WITH_AS(Loader(rig.rt, NoLengths{}),
                       doctest::Contains("the data set needs length(index)"),
                       std::invalid_argument);
}
