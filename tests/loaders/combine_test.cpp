// SPDX-License-Identifier: Apache-2.0
// Data sets made of others: which samples they have, that stages stay stages, and whose a failure
// is. [load.dataset] [load.pure] [load.error]
#include "loader_fixture.h"

#include <ebb/loaders/combine.h>

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

using ebb::AnyDataset;
using ebb::LoadError;
using ebb::test::contains;
using ebb::test::Numbers;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

struct Row {
  float index, draw;
  std::int64_t y;

  bool operator==(const Row&) const = default;
};

// All samples of an epoch, in order.
std::vector<Row> rows_of(const AnyDataset& data, ebb::LoaderOptions options = {.workers = 0}) {
  Rig rig;
  options.batch = 4;
  options.shuffle = false;
  ebb::Loader loader(rig.rt, data, options);
  std::vector<Row> rows;
  while (const auto batch = loader.next()) {
    const auto [x, y] = batch->fields<2>();
    for (std::size_t row = 0; row < batch->indices().size(); ++row) {
      const auto values = x.span<const float>().subspan(3 * row, 3);
      rows.push_back({values[0], values[1], y.span<const std::int64_t>()[row]});
    }
  }
  return rows;
}

std::vector<float> indices_of(const AnyDataset& data) {
  std::vector<float> indices;
  for (const Row& row : rows_of(data)) {
    indices.push_back(row.index);
  }
  return indices;
}

// The samples of Numbers, made in stages that are counted, each with an offset. bad: the sample
// whose bad_stage fails.
struct Staged {
  struct Local {
    std::uint64_t calls = 0;
  };
  struct Counts {
    std::atomic<int> fetched{0}, decoded{0}, finished{0};
  };
  std::uint64_t count = 10;
  std::shared_ptr<Counts> counts = std::make_shared<Counts>();
  std::uint64_t bad = ~std::uint64_t{0};
  std::string bad_stage = "";

  std::uint64_t size() const { return count; }
  std::uint64_t fingerprint() const { return 77; }
  std::string name() const { return "staged"; }
  std::string source(std::uint64_t index) const { return "file " + std::to_string(index); }
  ebb::Schema schema() const { return Numbers{}.schema(); }

  void fetch(std::uint64_t index, const ebb::StageContext& context, ebb::SampleBytes& out) const {
    ++counts->fetched;
    CHECK(context.index() == index);
    judge("fetch", index, context);
    std::memcpy(out.allocate(ebb::Bytes{sizeof index}).data(), &index, sizeof index);
  }
  void decode(std::uint64_t index, Local& local, const ebb::StageContext& context,
              std::span<const std::byte> bytes, ebb::SampleBytes& out) const {
    ++counts->decoded;
    ++local.calls;
    CHECK(context.index() == index);
    judge("decode", index, context);
    std::memcpy(out.allocate(ebb::Bytes{bytes.size()}).data(), bytes.data(), bytes.size());
  }
  void finish(std::uint64_t index, Local& /*local*/, const ebb::SampleContext& context,
              std::span<const std::byte> bytes, const ebb::SampleWriter& writer) const {
    ++counts->finished;
    judge("finish", index, context);
    std::uint64_t decoded = 0;
    std::memcpy(&decoded, bytes.data(), sizeof decoded);
    CHECK(decoded == index);
    const std::span<float> x = writer.field<float>(0);
    x[0] = 1000 + static_cast<float>(decoded);
    x[1] = context.random("draw").uniform();
    x[2] = 0;
    writer.field<std::int64_t>(1)[0] = static_cast<std::int64_t>(decoded);
  }

 private:
  void judge(std::string_view stage, std::uint64_t index, const ebb::StageContext& context) const {
    if (index == bad && stage == bad_stage) {
      context.fail(ebb::LoadErrorKind::corrupt, stage, 5, "damaged");
    }
    if (index == bad && bad_stage == "throw in " + std::string(stage)) {
      throw std::runtime_error("what it threw");
    }
  }
};

std::optional<LoadError> failure(const AnyDataset& data, const ebb::LoaderOptions& options) {
  try {
    rows_of(data, options);
  } catch (const LoadError& error) {
    return error;
  }
  return std::nullopt;
}

template <class Make>
std::string refusal(Make make) {
  try {
    make();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("subset: a range, or any indices, of a data set") {
  const AnyDataset data = Numbers{10};
  CHECK(indices_of(ebb::subset(data, 3, 6)) == std::vector<float>{3, 4, 5});
  CHECK(indices_of(ebb::subset(data, {9, 0, 4})) == std::vector<float>{9, 0, 4});
  CHECK(indices_of(ebb::subset(ebb::subset(data, 2, 9), {6, 0})) == std::vector<float>{8, 2});
  CHECK(ebb::subset(data, 3, 6).name() == "numbers[3:6]");
  CHECK(ebb::subset(data, {1, 2, 3}).name() == "numbers[3 of 10]");
  CHECK(contains(refusal([&] { ebb::subset(data, 5, 11); }), "[5, 11) is no part of the 10"));
  CHECK(contains(refusal([&] { ebb::subset(data, 5, 5); }), "is no part"));
  CHECK(contains(refusal([&] { ebb::subset(data, 6, 5); }), "is no part"));
  CHECK(contains(refusal([&] { ebb::subset(data, std::vector<std::uint64_t>{}); }), "no indices"));
  CHECK(contains(refusal([&] {
                   ebb::subset(data, {0, 10, 1});
                 }),
                 "index 10, at position 1, is not in the 10 samples of numbers"));
}

TEST_CASE("subset: a sample that is in it twice gets other random numbers each time") {
  const AnyDataset twice = ebb::subset(Numbers{10}, {7, 7, 7});
  const auto rows = rows_of(twice);
  CHECK(rows[0].index == rows[1].index);
  CHECK(std::set<float>{rows[0].draw, rows[1].draw, rows[2].draw}.size() == 3);
  CHECK(rows_of(twice, {.workers = 2}) == rows);
}

TEST_CASE("concat: the samples of one part after the other, each with a Local of its own") {
  const AnyDataset parts =
      ebb::concat({Numbers{2}, ebb::subset(Numbers{9}, 5, 6), Staged{3}, Numbers{1}});
  CHECK(parts.size() == 7);
  CHECK(parts.name() == "numbers + numbers[5:6] + staged + 1 more");
  CHECK(indices_of(parts) == std::vector<float>{0, 1, 5, 1000, 1001, 1002, 0});
  const auto rows = rows_of(parts);
  CHECK(rows_of(parts, {.workers = 3}) == rows);
  std::set<float> draws;
  for (const Row& row : rows) {
    draws.insert(row.draw);
  }
  CHECK(draws.size() == 7);  // the same index in two parts does not share its random numbers
}

TEST_CASE("concat: parts with other schemas are refused, naming what differs") {
  struct Other : Numbers {
    ebb::Schema its_schema = {};
    ebb::Schema schema() const { return its_schema; }
  };
  const auto differs = [](const ebb::Schema& schema) {
    Other other;
    other.its_schema = schema;
    return refusal([&] { ebb::concat({Numbers{1}, other}); });
  };
  using ebb::DType;
  CHECK(differs({{{"x", DType::f32, {3}}, {"y", DType::i64, {}}}}) == "accepted");
  CHECK(contains(differs({{{"x", DType::f32, {3}}}}), "[concat] data set 1, numbers, "));
  CHECK(contains(differs({{{"x", DType::f32, {3}}}}), "it has 1 fields, not 2"));
  CHECK(contains(differs({{{"x", DType::f32, {4}}, {"y", DType::i64, {}}}}),
                 "field 0 is \"x\" of f32[4], not \"x\" of f32[3]"));
  CHECK(contains(differs({{{"x", DType::f32, {3}}, {"y", DType::i32, {}}}}), "field 1 is"));
  CHECK(contains(differs({{{"x", DType::f32, {3}}, {"z", DType::i64, {}}}}), "\"z\""));
  CHECK(contains(differs({{{"x", DType::f32, {3}, true}, {"y", DType::i64, {}}}}), "varies"));
  CHECK(contains(refusal([] { ebb::concat({}); }), "no data sets"));
}

TEST_CASE("transformed: changes what was written, by the sample's own random numbers") {
  const auto shift = [](const ebb::SampleContext& context, ebb::SampleWriter& out) {
    out.field<float>(0)[0] += 10 * static_cast<float>(context.index());
    out.field<float>(0)[1] = context.random("noise").uniform();
  };
  for (const AnyDataset& data : {AnyDataset(Numbers{5}), AnyDataset(Staged{5})}) {
    const AnyDataset changed = ebb::transformed(data, "shift 10", shift);
    const auto before = rows_of(data);
    const auto after = rows_of(changed);
    CHECK(rows_of(changed, {.workers = 3}) == after);
    REQUIRE(after.size() == 5);
    for (std::size_t i = 0; i < after.size(); ++i) {
      CHECK(after[i].index == before[i].index + 10 * static_cast<float>(i));
      CHECK(after[i].draw == ebb::Random(0, "noise", 0, i).uniform());
      CHECK(after[i].y == before[i].y);
    }
    CHECK(indices_of(ebb::subset(changed, 3, 4)).front() == after[3].index);
  }
  CHECK(contains(refusal([] { ebb::transformed(Numbers{1}, "", nullptr); }), "no transform"));
}

TEST_CASE("combined: stages stay stages, and what was decoded is cached") {
  Rig rig;
  const Staged staged;
  const AnyDataset some = ebb::subset(staged, {8, 1, 3, 5});
  const AnyDataset data =
      ebb::transformed(ebb::concat({some, Numbers{6}}), "nothing",
                       [](const ebb::SampleContext& /*context*/, ebb::SampleWriter& /*out*/) {});
  for (const unsigned fetch_threads : {0u, 2u}) {
    CAPTURE(fetch_threads);
    staged.counts->fetched = staged.counts->decoded = staged.counts->finished = 0;
    ebb::Loader loader(rig.rt, data,
                       {.batch = 3, .cache = ebb::Bytes{1 << 20}, .fetch_threads = fetch_threads});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      loader.begin_epoch(epoch);
      std::multiset<std::int64_t> seen;
      while (const auto batch = loader.next()) {
        const auto y = batch->field(1).span<const std::int64_t>();
        seen.insert(y.begin(), y.end());
      }
      CHECK(seen == std::multiset<std::int64_t>{0, 1, 1, 2, 3, 3, 4, 5, 5, 8});
    }
    CHECK(staged.counts->fetched == 4);
    CHECK(staged.counts->decoded == 4);
    CHECK(staged.counts->finished == 12);
    CHECK(loader.stats().cache.samples == 4);
  }
}

TEST_CASE("combined: a sample that does not load is told as its own data set's") {
  for (const char* const how :
       {"fetch", "decode", "finish", "throw in fetch", "throw in decode", "throw in finish"}) {
    for (const unsigned fetch_threads : {0u, 1u}) {
      CAPTURE(how);
      CAPTURE(fetch_threads);
      Staged staged;
      staged.bad = 7;
      staged.bad_stage = how;
      const AnyDataset data = ebb::concat({Numbers{20}, ebb::subset(staged, {2, 7})});
      const auto error = failure(data, {.workers = 1, .fetch_threads = fetch_threads});
      REQUIRE(error.has_value());
      CAPTURE(error->what());
      CHECK(error->info().dataset == "staged");
      CHECK(error->info().index == 7);
      CHECK(error->info().source == "file 7");
      CHECK(error->info().seq == 5);
      CHECK(contains(error->what(), contains(how, "throw") ? "what it threw" : "damaged"));
    }
  }
  Numbers numbers{4};
  numbers.before = [](std::uint64_t index, const ebb::SampleContext& context) {
    CHECK(context.index() == index);
    if (index == 2) {
      context.fail(ebb::LoadErrorKind::corrupt, "load", 1, "damaged");
    }
  };
  const auto error = failure(ebb::subset(ebb::concat({Staged{4}, numbers}), 3, 8), {.workers = 0});
  REQUIRE(error.has_value());
  CHECK(error->info().dataset == "numbers");
  CHECK(error->info().index == 2);
}

TEST_CASE("combined: skipped samples are those of the loader's data set") {
  Rig rig;
  Staged staged;
  staged.bad = 7;
  staged.bad_stage = "decode";
  ebb::Loader loader(rig.rt, ebb::subset(staged, 5, 9),
                     {.batch = 2, .shuffle = false, .on_error = ebb::OnError::skip});
  std::vector<std::uint64_t> indices;
  while (const auto batch = loader.next()) {
    indices.insert(indices.end(), batch->indices().begin(), batch->indices().end());
    loader.closed(*batch);
  }
  CHECK(indices == std::vector<std::uint64_t>{0, 1, 3});
  CHECK(rig.log.count("data set staged, sample 7") == 1);
}

TEST_CASE("combined: samples that vary in length keep their lengths") {
  struct Varying {
    struct Local {};
    std::uint64_t size() const { return 6; }
    std::uint64_t fingerprint() const { return 5; }
    ebb::Schema schema() const {
      return {{{.name = "x", .dtype = ebb::DType::u8, .sample_shape = {9}, .varies = true}}};
    }
    std::int64_t length(std::uint64_t index) const { return static_cast<std::int64_t>(index); }
    void load(std::uint64_t index, Local& /*local*/, const ebb::SampleContext& /*context*/,
              ebb::SampleWriter& writer) const {
      CHECK(writer.field<std::uint8_t>(0).size() == index);
      std::fill_n(writer.field<std::uint8_t>(0).begin(), index, static_cast<std::uint8_t>(index));
    }
  };
  Rig rig;
  const AnyDataset data = ebb::subset(ebb::concat({Varying{}, Varying{}}), {5, 8});
  ebb::Loader loader(rig.rt, data, {.batch = 2, .workers = 0, .shuffle = false});
  const auto batch = loader.next();
  const auto x = batch->field(0).span<const std::uint8_t>();
  CHECK(std::vector<int>(x.begin(), x.end()) == std::vector<int>{5, 5, 5, 5, 5, 2, 2, 0, 0, 0});
}

TEST_CASE("combined: the fingerprint tells apart what they are made of, and how") {
  const AnyDataset data = Numbers{10};
  const auto nothing = [](const ebb::SampleContext&, ebb::SampleWriter&) {};
  std::set<std::uint64_t> seen;
  for (const AnyDataset& made :
       {data, ebb::subset(data, 0, 10), ebb::subset(data, 0, 9), ebb::subset(data, 1, 10),
        ebb::subset(data, {0, 1}), ebb::subset(data, {1, 0}), ebb::subset(Numbers{11}, 0, 9),
        ebb::concat({data}), ebb::concat({data, data}), ebb::concat({data, Numbers{11}}),
        ebb::concat({Numbers{11}, data}), ebb::transformed(data, "a", nothing),
        ebb::transformed(data, "b", nothing)}) {
    CHECK(seen.insert(made.fingerprint()).second);
  }
  CHECK(ebb::subset(data, 2, 5).fingerprint() == ebb::subset(Numbers{10}, 2, 5).fingerprint());
}
