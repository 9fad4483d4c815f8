// SPDX-License-Identifier: Apache-2.0
// Loaders with orders of every kind, and the shares of ranks. [load.pure]
#include "loader_fixture.h"
#include "order_fixture.h"

#include <set>

using ebb::Loader;
using ebb::LoaderOptions;
using ebb::OnError;
using ebb::OrderSpec;
using ebb::Tail;
using ebb::test::contains;
using ebb::test::drain;
using ebb::test::Numbers;
using ebb::test::refusal_of;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

std::vector<OrderSpec> all_orders(std::uint64_t size) {
  std::vector<double> weights;
  std::vector<std::int64_t> lengths;
  for (std::uint64_t i = 0; i < size; ++i) {
    weights.push_back(static_cast<double>(i % 5));
    lengths.push_back(static_cast<std::int64_t>(i * 37 % 101));
  }
  return {OrderSpec::sequential(),
          OrderSpec::shuffled(),
          OrderSpec::windowed({.window = 40}),
          OrderSpec::windowed({.window = 40, .page = 7}),
          OrderSpec::weighted(weights, size + 23),
          OrderSpec::bucketed({.window = 3, .lengths = lengths})};
}

// A batch's samples, each with the random numbers it got.
using Samples = std::vector<std::pair<std::uint64_t, float>>;

Samples samples_of(const ebb::Batch& batch) {
  Samples samples;
  const ebb::Tensor x = batch.field("x");
  const auto values = x.span<const float>();
  for (std::size_t row = 0; row < batch.indices().size(); ++row) {
    samples.emplace_back(batch.indices()[row], values[3 * row + 1]);
    CHECK(values[3 * row] == static_cast<float>(batch.indices()[row]));
  }
  return samples;
}

// What is left of an epoch, by batch.
std::vector<Samples> rest_of(Loader& loader) {
  std::vector<Samples> batches;
  while (const auto batch = loader.next()) {
    batches.push_back(samples_of(*batch));
    loader.closed(*batch);
  }
  return batches;
}

// What the ranks of a world get of an epoch, from state on, put together.
std::vector<Samples> rest_of_world(ebb::Runtime& rt, LoaderOptions options, std::uint32_t world,
                                   const ebb::LoaderState& state) {
  std::vector<Samples> all;
  options.rank.world = world;
  for (options.rank.rank = 0; options.rank.rank < world; ++options.rank.rank) {
    Loader loader(rt, Numbers{}, options);
    loader.restore(state);
    const auto own = rest_of(loader);
    all.resize(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      all[i].insert(all[i].end(), own[i].begin(), own[i].end());
    }
  }
  return all;
}

}  // namespace

TEST_CASE("loader: batches follow the order, whatever its kind") {
  Rig rig;
  for (const OrderSpec& spec : all_orders(100)) {
    Loader loader(rig.rt, Numbers{}, {.batch = 8, .seed = 5, .order = spec});
    loader.begin_epoch(2);
    const ebb::Order order(spec, {.size = 100, .batch = 8, .seed = 5, .epoch = 2});
    std::vector<std::uint64_t> seen;
    for (const Samples& batch : rest_of(loader)) {
      for (const auto& [index, draw] : batch) {
        seen.push_back(index);
      }
    }
    CAPTURE(spec.describe());
    CHECK(seen == ebb::test::epoch_of(order));
  }
}

TEST_CASE("loader: shuffle chooses between two orders, and order stands in its place") {
  Rig rig;
  const auto first_epoch = [&](const LoaderOptions& options) {
    Loader loader(rig.rt, Numbers{}, options);
    CHECK(loader.options().order->id() == loader.state().order);
    return drain(loader);
  };
  CHECK(first_epoch({.shuffle = true}) == first_epoch({.order = OrderSpec::shuffled()}));
  CHECK(first_epoch({.shuffle = false}) == first_epoch({.order = OrderSpec::sequential()}));
  CHECK(first_epoch({.shuffle = true, .order = OrderSpec::sequential()}) ==
        first_epoch({.shuffle = false}));
}

// Order or randomness that changes with the workers. (pytorch#15170, #3880)
TEST_CASE("loader: 500 batches and their random draws do not depend on workers, in any order") {
  Rig rig;
  for (const OrderSpec& spec : all_orders(1000)) {
    std::vector<std::uint64_t> expected;
    for (const unsigned workers : {0u, 1u, 2u, 4u, 8u}) {
      Loader loader(rig.rt, Numbers{1000},
                    {.batch = 10, .seed = 3, .workers = workers, .order = spec});
      std::vector<std::uint64_t> digests;
      std::set<float> draws;
      std::set<std::pair<std::uint64_t, std::uint64_t>> drawn;
      while (digests.size() < 500) {
        loader.begin_epoch(loader.next_epoch());
        for (auto batch = loader.next(); batch && digests.size() < 500; batch = loader.next()) {
          digests.push_back(ebb::test::digest(*batch));
          for (const auto& [index, draw] : samples_of(*batch)) {
            draws.insert(draw);
            drawn.emplace(batch->epoch(), index);
          }
        }
      }
      // 5000 draws of 2^24 values: one pair in 13 million is equal by chance.
      CHECK(draws.size() + 10 > drawn.size());
      expected = workers == 0 ? digests : expected;
      CAPTURE(spec.describe());
      CAPTURE(workers);
      CHECK(digests == expected);
    }
  }
}

TEST_CASE("loader: the ranks of every world have the batches of one") {
  Rig rig;
  for (const OrderSpec& spec : all_orders(100)) {
    for (const Tail tail : {Tail::partial, Tail::drop, Tail::pad}) {
      // 100 samples leave 12 for the last batch, 123 leave 13.
      const LoaderOptions options{
          .batch = 22, .seed = 4, .workers = 0, .order = spec, .rank = {.tail = tail}};
      const ebb::LoaderState begin = Loader(rig.rt, Numbers{}, options).state();
      const auto expected = rest_of_world(rig.rt, options, 1, begin);
      for (const std::uint32_t world : {2u, 3u, 4u, 8u}) {
        CAPTURE(spec.describe());
        CAPTURE(world);
        CHECK(rest_of_world(rig.rt, options, world, begin) == expected);
      }
    }
  }
}

TEST_CASE("loader: a run goes on with another number of ranks where it was saved") {
  Rig rig;
  for (const OrderSpec& spec : all_orders(100)) {
    const LoaderOptions options{.batch = 20, .seed = 4, .order = spec, .rank = {.tail = Tail::pad}};
    const ebb::LoaderState begin = Loader(rig.rt, Numbers{}, options).state();
    const auto whole = rest_of_world(rig.rt, options, 1, begin);
    for (const std::uint32_t saved_under : {1u, 2u, 4u}) {
      ebb::LoaderState state;
      {
        LoaderOptions own = options;
        own.rank = {.rank = saved_under - 1, .world = saved_under, .tail = Tail::pad};
        Loader loader(rig.rt, Numbers{}, own);
        for (int n = 0; n < 2; ++n) {
          const auto batch = loader.next();
          REQUIRE(batch.has_value());
          loader.closed(*batch);
        }
        state = loader.state();
      }
      CHECK(state.seq == 2);
      for (const std::uint32_t world : {1u, 3u, 4u}) {
        CAPTURE(spec.describe());
        CAPTURE(saved_under);
        CAPTURE(world);
        CHECK(rest_of_world(rig.rt, options, world, state) ==
              std::vector(whole.begin() + 2, whole.end()));
      }
    }
  }
}

TEST_CASE("loader: a padded last batch says how much of it is padding") {
  Rig rig;
  const auto epoch = ebb::test::epoch_of(ebb::Order(ebb::OrderKind::shuffled, 100, 6, 0));
  for (const std::uint32_t rank : {0u, 1u}) {
    Loader loader(rig.rt, Numbers{},
                  {.batch = 16, .seed = 6, .rank = {.rank = rank, .world = 2, .tail = Tail::pad}});
    CHECK(loader.batches_per_epoch() == 7);
    std::int64_t padding = 0;
    std::vector<std::uint64_t> last;
    while (const auto batch = loader.next()) {
      CHECK(batch->size() == 8);
      CHECK((batch->seq() == 6 || batch->padding() == 0));
      padding += batch->padding();
      last = {batch->indices().begin(), batch->indices().end()};
    }
    CHECK(padding == (rank == 0 ? 4 : 8));  // 100 is 6 whole batches and 4 samples
    const auto begin = epoch.begin() + (rank == 0 ? 0 : 4);
    const std::ptrdiff_t own = 8 - padding;
    CHECK(std::equal(last.begin() + own, last.end(), begin));
    CHECK(std::equal(last.begin(), last.begin() + own, epoch.begin() + 96));
  }
}

TEST_CASE("loader: padding that cannot be loaded is neither in a batch nor in its count") {
  Rig rig;
  Numbers data{10};
  data.before = [](std::uint64_t index, const ebb::SampleContext&) {
    if (index == 1) {
      throw std::runtime_error("no such sample");
    }
  };
  Loader loader(rig.rt, data,
                {.batch = 7,
                 .workers = 0,
                 .shuffle = false,
                 .rank = {.tail = Tail::pad},
                 .on_error = OnError::skip});
  for (int epoch = 0; epoch < 2; ++epoch) {
    loader.begin_epoch(static_cast<std::uint64_t>(epoch));
    CHECK(loader.next()->size() == 6);
    const auto last = loader.next();
    CHECK(std::vector(last->indices().begin(), last->indices().end()) ==
          std::vector<std::uint64_t>{7, 8, 9, 0, 2, 3});
    CHECK(last->padding() == 3);
  }
}

TEST_CASE("loader: a padded batch found bad while it is filled loses its padding's row") {
  Rig rig;
  Numbers data{10};
  data.before = [](std::uint64_t index, const ebb::SampleContext& context) {
    if (index == 1 && context.seq() == 1) {
      throw std::runtime_error("no such sample");
    }
  };
  Loader loader(rig.rt, data,
                {.batch = 7,
                 .workers = 0,
                 .shuffle = false,
                 .rank = {.tail = Tail::pad},
                 .on_error = OnError::skip});
  CHECK(loader.next()->size() == 7);
  const auto last = loader.next();
  CHECK(last->size() == 6);
  CHECK(last->padding() == 3);
}

TEST_CASE("loader: restore refuses another order, by name") {
  Rig rig;
  const auto orders = all_orders(100);
  for (const OrderSpec& saved : orders) {
    const ebb::LoaderState state = Loader(rig.rt, Numbers{}, {.batch = 8, .order = saved}).state();
    for (const OrderSpec& own : orders) {
      Loader loader(rig.rt, Numbers{}, {.batch = 8, .order = own});
      const std::string said = refusal_of([&] { loader.restore(state); });
      CAPTURE(said);
      if (saved.id() == own.id()) {
        CHECK(said == "accepted");
      } else {
        CHECK(contains(said, "saved with the order " + ebb::describe_order(saved.id())));
        CHECK(contains(said, "this loader has " + own.describe()));
      }
    }
  }
}

TEST_CASE("loader: orders and ranks that cannot be are refused, and the message names them") {
  Rig rig;
  const auto refused = [&](const LoaderOptions& options) {
    return refusal_of([&] { const Loader loader(rig.rt, Numbers{}, options); });
  };
  const std::vector<double> weights = {1, 2};
  CHECK(contains(refused({.order = OrderSpec::weighted(weights)}), "2 weights for the 100"));
  CHECK(contains(refused({.order = OrderSpec::bucketed({})}),
                 "length(index) of the data set numbers"));
  CHECK(contains(refused({.rank = {.rank = 4, .world = 4}}), "[Loader] rank is 4"));
  CHECK(contains(refused({.batch = 3, .rank = {.world = 4}}), "[Loader] batch is 3 for 4 ranks"));
  CHECK(contains(refused({.batch = 33, .rank = {.world = 4}}), "has 1 samples for 4 ranks"));
  CHECK(refused({.batch = 33, .rank = {.world = 4, .tail = Tail::pad}}) == "accepted");
  CHECK(refused({.batch = 33, .drop_last = true, .rank = {.world = 4}}) == "accepted");
  CHECK(contains(refused({.drop_last = true, .rank = {.tail = Tail::pad}}), "ask for one of them"));
  CHECK(
      contains(refused({.batch = 101, .rank = {.tail = Tail::drop}}), "drop_last leaves no batch"));
}

TEST_CASE("loader: a function of lengths that throws is an error of the batch") {
  Rig rig;
  const auto spec = OrderSpec::bucketed({.length = [](std::uint64_t index) -> std::int64_t {
    if (index == 50) {
      throw std::runtime_error("no length for 50");
    }
    return 1;
  }});
  Loader loader(rig.rt, Numbers{}, {.batch = 10, .order = spec});
  try {
    loader.next();
    FAIL("no error");
  } catch (const ebb::LoadError& error) {
    CHECK(error.info().stage == "order");
    CHECK(contains(error.what(), "no length for 50"));
  }
}

namespace {

// Sample i is i % 50 + 1 long.
struct Sentences {
  struct Local {};
  std::uint64_t size() const { return 1000; }
  std::uint64_t fingerprint() const { return 11; }
  ebb::Schema schema() const {
    return {{{.name = "x", .dtype = ebb::DType::i64, .sample_shape = {50}, .varies = true}}};
  }
  std::int64_t length(std::uint64_t index) const {
    return static_cast<std::int64_t>(index % 50) + 1;
  }
  void load(std::uint64_t index, Local& /*local*/, const ebb::SampleContext& /*context*/,
            ebb::SampleWriter& writer) const {
    for (std::int64_t& x : writer.field<std::int64_t>(0)) {
      x = static_cast<std::int64_t>(index);
    }
  }
};

}  // namespace

TEST_CASE("loader: a bucketed order takes the data set's own lengths") {
  Rig rig;
  const auto elements = [&](const OrderSpec& spec) {
    Loader loader(rig.rt, Sentences{}, {.batch = 20, .order = spec});
    std::int64_t sum = 0;
    std::set<std::uint64_t> seen;
    while (const auto batch = loader.next()) {
      sum += batch->field(0).elements();
      seen.insert(batch->indices().begin(), batch->indices().end());
    }
    CHECK(seen.size() == 1000);
    return sum;
  };
  const std::int64_t least = 20 * 50 * 51 / 2;
  CHECK(elements(OrderSpec::bucketed({})) < least * 103 / 100);
  CHECK(elements(OrderSpec::shuffled()) > least * 170 / 100);
}
