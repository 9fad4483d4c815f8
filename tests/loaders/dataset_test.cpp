// SPDX-License-Identifier: Apache-2.0
// Data sets: what a schema may be, what load is given. [load.dataset]
#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>

using ebb::DType;
using ebb::test::contains;

namespace {

static_assert(ebb::Dataset<ebb::test::Numbers>);
static_assert(!ebb::Dataset<ebb::AnyDataset>);
static_assert(!ebb::Dataset<int>);
static_assert(std::is_convertible_v<ebb::test::Numbers, ebb::AnyDataset>);

// Whatever schema, and whatever load.
struct Custom {
  struct Local {
    int loads = 0;
  };
  ebb::Schema its_schema = {};
  std::function<void(Local&, const ebb::SampleContext&, ebb::SampleWriter&)> body = {};

  std::uint64_t size() const { return 20; }
  std::uint64_t fingerprint() const { return 1; }
  ebb::Schema schema() const { return its_schema; }
  void load(std::uint64_t /*index*/, Local& local, const ebb::SampleContext& context,
            ebb::SampleWriter& writer) const {
    body(local, context, writer);
  }
};

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

std::string refusal(ebb::Runtime& rt, const ebb::Schema& schema) {
  try {
    const ebb::Loader loader(rt, Custom{schema, {}}, {.workers = 0});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("dataset: a schema that cannot be is refused when the loader is made") {
  Rig rig;
  CHECK(contains(refusal(rig.rt, {}), "no field"));
  CHECK(contains(refusal(rig.rt, {{{"a"}, {"a"}}}), "two fields are called \"a\""));
  CHECK(contains(refusal(rig.rt, {{{"a", DType::f32, {1, 1, 1, 1, 1, 1, 1, 1}}}}), "at most 7"));
  const std::int64_t much = std::int64_t{1} << 40;
  CHECK(contains(refusal(rig.rt, {{{"a", DType::f64, {much, 1 << 22}}}}), "overflows"));
  CHECK(contains(refusal(rig.rt, {{{"a", DType::string, {}}}}), "not strings"));
  CHECK(refusal(rig.rt, {{{"a", DType::f64, {0}}}}) == "accepted");
}

TEST_CASE("dataset: fields of all types lie side by side, aligned, and keep what was written") {
  Rig rig;
  const ebb::Schema schema = {{{"flag", DType::boolean, {}},
                               {"d", DType::f64, {2}},
                               {"b", DType::u8, {3}},
                               {"s", DType::i16, {}}}};
  const auto write = [](Custom::Local&, const ebb::SampleContext& context, ebb::SampleWriter& out) {
    const auto i = context.index();
    out.field<bool>(0)[0] = i % 2 == 1;
    std::fill(out.field<double>(1).begin(), out.field<double>(1).end(), static_cast<double>(i));
    std::fill(out.field<std::uint8_t>(2).begin(), out.field<std::uint8_t>(2).end(),
              static_cast<std::uint8_t>(i));
    out.field<std::int16_t>(3)[0] = static_cast<std::int16_t>(i);
  };
  ebb::Loader loader(rig.rt, Custom{schema, write}, {.batch = 7, .workers = 0});
  while (const auto batch = loader.next()) {
    const auto [flag, d, b, s] = batch->fields<4>();
    for (std::size_t row = 0; row < batch->indices().size(); ++row) {
      const std::uint64_t i = batch->indices()[row];
      CHECK(flag.span<const bool>()[row] == (i % 2 == 1));
      CHECK(d.span<const double>()[2 * row + 1] == static_cast<double>(i));
      CHECK(b.span<const std::uint8_t>()[3 * row + 2] == i);
      CHECK(s.span<const std::int16_t>()[row] == static_cast<std::int16_t>(i));
    }
    CHECK(reinterpret_cast<std::uintptr_t>(d.data<const double>()) % 64 == 0);
    CHECK(batch->field("s").data<const std::int16_t>() == s.data<const std::int16_t>());
  }
}

TEST_CASE("dataset: a field of another type, or that is none, is the data set's mistake") {
  Rig rig;
  const ebb::Schema schema = {{{"a", DType::f32, {2}}}};
  const auto wrong = [](Custom::Local&, const ebb::SampleContext& context, ebb::SampleWriter& out) {
    static_cast<void>(context.index() % 2 == 0 ? out.field<float>(1).size()
                                               : out.field<double>(0).size());
  };
  for (const bool shifted : {false, true}) {
    ebb::Loader loader(rig.rt, Custom{schema, wrong}, {.batch = 1, .workers = 0, .shuffle = false});
    loader.restore({.seq = shifted ? 1u : 0u, .fingerprint = 1, .batch = 1, .order = 0});
    try {
      loader.next();
      FAIL("it was not refused");
    } catch (const ebb::LoadError& error) {
      CHECK(contains(error.what(), shifted ? "field 0 is f32, not f64" : "there is no field 1"));
      CHECK(error.info().index == (shifted ? 1 : 0));
    }
  }
}

TEST_CASE("dataset: scratch is the sample's own, aligned, and not made anew for each sample") {
  Rig rig;
  std::set<const std::byte*> addresses;
  const auto body = [&addresses](Custom::Local&, const ebb::SampleContext& context,
                                 ebb::SampleWriter& out) {
    const auto a = context.scratch(ebb::Bytes{1000});
    const auto b = context.scratch(ebb::Bytes{5000});
    CHECK(a.size() == 1000);
    CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % 64 == 0);
    CHECK((a.data() + a.size() <= b.data() || b.data() + b.size() <= a.data()));
    std::fill(a.begin(), a.end(), std::byte{1});
    std::fill(b.begin(), b.end(), std::byte{2});
    CHECK(a[999] == std::byte{1});
    addresses.insert(a.data());
    out.field<float>(0)[0] = 0;
  };
  ebb::Loader loader(rig.rt, Custom{{{{"a", DType::f32, {1}}}}, body}, {.batch = 4, .workers = 0});
  while (loader.next()) {
  }
  CHECK(addresses.size() <= 2);  // before and after it grew to what a sample needs
}

TEST_CASE("dataset: Local stays with its worker") {
  Rig rig;
  int most = 0;
  const auto body = [&most](Custom::Local& local, const ebb::SampleContext&,
                            ebb::SampleWriter& out) {
    most = std::max(most, ++local.loads);
    out.field<float>(0)[0] = 0;
  };
  ebb::Loader loader(rig.rt, Custom{{{{"a", DType::f32, {1}}}}, body}, {.batch = 4, .workers = 0});
  while (loader.next()) {
  }
  CHECK(most == 20);
}

TEST_CASE("dataset: random numbers depend on sample and epoch, and on nothing else") {
  Rig rig;
  std::set<float> draws;
  for (const unsigned workers : {0u, 2u}) {
    ebb::Loader loader(rig.rt, ebb::test::Numbers{50}, {.batch = 8, .workers = workers});
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      loader.begin_epoch(epoch);
      while (const auto batch = loader.next()) {
        for (std::size_t row = 0; row < batch->indices().size(); ++row) {
          draws.insert(batch->field(0).span<const float>()[3 * row + 1]);
        }
      }
    }
  }
  CHECK(draws.size() == 100);  // all different, and the same for both numbers of workers
}
