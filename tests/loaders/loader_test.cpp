// SPDX-License-Identifier: Apache-2.0
// What batches hold and in which order they come. [load.pure] [load.slots]
#include "loader_fixture.h"

#include <ebb/loaders/order.h>

#include <doctest/doctest.h>

#include <set>

using ebb::Loader;
using ebb::LoaderOptions;
using ebb::test::contains;
using ebb::test::digest;
using ebb::test::drain;
using ebb::test::Numbers;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

std::vector<std::uint64_t> two_epochs(ebb::Runtime& rt, const LoaderOptions& options) {
  Loader loader(rt, Numbers{}, options);
  std::vector<std::uint64_t> all;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    loader.begin_epoch(epoch);
    const auto some = drain(loader);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string refusal(ebb::Runtime& rt, const LoaderOptions& options, std::uint64_t count = 100) {
  try {
    const Loader loader(rt, Numbers{count}, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("loader: an epoch is every sample once, in the order of seed and epoch") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 8, .seed = 5});
  CHECK(loader.batches_per_epoch() == 13);
  loader.begin_epoch(3);
  const ebb::Order order(ebb::OrderKind::shuffled, 100, 5, 3);
  std::uint64_t position = 0;
  std::uint64_t seq = 0;
  while (const auto batch = loader.next()) {
    CHECK(batch->epoch() == 3);
    CHECK(batch->seq() == seq++);
    CHECK(batch->size() == (seq == 13 ? 4 : 8));
    const auto [x, y] = batch->fields<2>();
    CHECK(x.shape() == ebb::Shape{batch->size(), 3});
    CHECK(y.shape() == ebb::Shape{batch->size()});
    for (std::size_t row = 0; row < batch->indices().size(); ++row) {
      const std::uint64_t index = order.at(position++);
      CHECK(batch->indices()[row] == index);
      CHECK(y.span<const std::int64_t>()[row] == static_cast<std::int64_t>(index));
      CHECK(x.span<const float>()[3 * row] == static_cast<float>(index));
      CHECK(x.span<const float>()[3 * row + 2] == 3.0f);
    }
  }
  CHECK(position == 100);
  CHECK_FALSE(loader.next().has_value());
}

TEST_CASE("loader: batches are the same for every number of workers and every depth") {
  Rig rig;
  const auto expected = two_epochs(rig.rt, {.batch = 7, .seed = 3, .workers = 0});
  REQUIRE(expected.size() == 30);
  CHECK(std::set(expected.begin(), expected.end()).size() == 30);
  for (const unsigned workers : {0u, 1u, 2u, 4u}) {
    for (const unsigned depth : {1u, 2u, 8u}) {
      CAPTURE(workers);
      CAPTURE(depth);
      CHECK(two_epochs(rig.rt, {.batch = 7, .seed = 3, .workers = workers, .depth = depth}) ==
            expected);
    }
  }
  CHECK(two_epochs(rig.rt, {.batch = 7, .seed = 4, .workers = 0}) != expected);
}

TEST_CASE("loader: a run resumes at every batch with the batches that it would have had") {
  Rig rig;
  const auto whole = two_epochs(rig.rt, {.batch = 9, .seed = 2});
  const std::uint64_t per_epoch = whole.size() / 2;
  for (std::uint64_t stop = 0; stop < whole.size(); ++stop) {
    CAPTURE(stop);
    ebb::LoaderState state;
    {
      // Batches are ahead when the state is taken: they must not count.
      Loader loader(rig.rt, Numbers{}, {.batch = 9, .seed = 2, .workers = 2, .depth = 4});
      loader.begin_epoch(0);
      for (std::uint64_t n = 0; n < stop; ++n) {
        if (n == per_epoch) {
          loader.begin_epoch(1);
        }
        const auto batch = loader.next();
        REQUIRE(batch.has_value());
        loader.closed(*batch);
      }
      state = loader.state();
    }
    CHECK(state.epoch == stop / per_epoch);
    CHECK(state.seq == stop % per_epoch);
    Loader loader(rig.rt, Numbers{}, {.batch = 9, .seed = 2, .workers = stop % 3u == 0 ? 0u : 1u});
    loader.restore(state);
    std::vector<std::uint64_t> rest;
    while (loader.next_epoch() < 2) {
      loader.begin_epoch(loader.next_epoch());
      const auto some = drain(loader);
      rest.insert(rest.end(), some.begin(), some.end());
    }
    CHECK(rest == std::vector(whole.begin() + static_cast<std::ptrdiff_t>(stop), whole.end()));
  }
}

TEST_CASE("loader: restore refuses the state of another run, by name") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 10, .seed = 1});
  const auto refused = [&loader](auto change) -> std::string {
    ebb::LoaderState state = loader.state();
    change(state);
    try {
      loader.restore(state);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(contains(refused([](auto& s) { ++s.fingerprint; }), "fingerprint"));
  CHECK(contains(refused([](auto& s) { s.seed = 9; }), "seed 9, this loader has 1"));
  CHECK(contains(refused([](auto& s) { s.batch = 64; }), "batch 64, this loader has 10"));
  CHECK(contains(refused([](auto& s) { s.order = 0; }),
                 "the order sequential, this loader has shuffled"));
  CHECK(contains(refused([](auto& s) { s.seq = 10; }), "an epoch has 10"));
  CHECK(refused([](auto& s) { s.seq = 9; }) == "accepted");
}

TEST_CASE("loader: the cursor moves when a batch is closed, and not before") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 50, .workers = 2});
  loader.begin_epoch(0);
  auto first = loader.next();
  auto second = loader.next();
  CHECK(loader.state().seq == 0);
  loader.closed(*first);
  CHECK(loader.state().seq == 1);
  loader.closed(*first);
  CHECK(loader.state().seq == 1);
  loader.closed(*second);
  CHECK(loader.state().epoch == 1);  // the end of an epoch is the begin of the next one
  CHECK(loader.state().seq == 0);
  loader.begin_epoch(1);
  loader.closed(*second);
  CHECK(loader.state().seq == 0);  // it is of an epoch that has ended
}

TEST_CASE("loader: a loop of several epochs gets them all, and the cursor follows its steps") {
  Rig rig;
  const auto expected = two_epochs(rig.rt, {.batch = 7});
  Loader loader(rig.rt, Numbers{}, {.batch = 7});
  ebb::Loop loop(rig.rt);
  std::vector<std::uint64_t> seen;
  for (auto& it : loop.over(loader, {.epochs = 2})) {
    seen.push_back(digest(it.batch()));
    const auto [x, y] = it.fields<2>();
    CHECK(x.size(0) == y.size(0));
    CHECK(loader.state().epoch * 15 + loader.state().seq == seen.size() - 1);
  }
  loop.finish();
  CHECK(seen == expected);
  CHECK(loader.state().epoch == 2);
  CHECK(loop.stats().stragglers == 0);
}

TEST_CASE("loader: after an epoch that was left early the next one begins at its first batch") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 10, .workers = 2});
  ebb::Loop loop(rig.rt);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    std::uint64_t steps = 0;
    for (auto& it : loop.over(loader)) {
      CHECK(it.batch().epoch() == epoch);
      CHECK(it.batch().seq() == steps);
      if (++steps == 3) {
        break;
      }
    }
    CHECK(loader.state().epoch == epoch);
    CHECK(loader.state().seq == 3);
    CHECK(loader.next_epoch() == epoch + 1);
  }
}

TEST_CASE("loader: a batch whose step threw is handed out again after a resume") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 10});
  ebb::Loop loop(rig.rt);
  try {
    for (auto& it : loop.over(loader)) {
      if (it.batch().seq() == 4) {
        throw std::runtime_error("a step failed");
      }
    }
  } catch (const std::runtime_error&) {
  }
  CHECK(loader.state().seq == 4);
}

TEST_CASE("loader: without begin_epoch the first batch begins the next epoch") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 10});
  CHECK(loader.next()->epoch() == 0);
  CHECK(loader.next()->seq() == 1);
}

TEST_CASE("loader: drop_last leaves out the small batch, and a batch may exceed the data set") {
  Rig rig;
  Loader dropping(rig.rt, Numbers{}, {.batch = 30, .drop_last = true});
  CHECK(dropping.batches_per_epoch() == 3);
  CHECK(drain(dropping).size() == 3);
  Loader one(rig.rt, Numbers{}, {.batch = 1000000, .workers = 0});
  CHECK(one.stats().slot_bytes < ebb::Bytes{8192});
  CHECK(one.next()->size() == 100);
  CHECK_FALSE(one.next().has_value());
}

TEST_CASE("loader: options that cannot be are refused, and the message names them") {
  Rig rig;
  CHECK(contains(refusal(rig.rt, {.batch = 0}), "[Loader] batch is 0"));
  CHECK(contains(refusal(rig.rt, {.batch = -1}), "[Loader] batch is -1"));
  CHECK(contains(refusal(rig.rt, {.workers = 257}), "[Loader] workers is 257"));
  CHECK(contains(refusal(rig.rt, {.depth = 0}), "[Loader] depth is 0"));
  CHECK(contains(refusal(rig.rt, {.leases = 0}), "[Loader] leases is 0"));
  CHECK(contains(refusal(rig.rt, {.deadline = ebb::Milliseconds(0)}), "[Loader] deadline is 0"));
  CHECK(contains(refusal(rig.rt, {.batch = 101, .drop_last = true}), "drop_last leaves no batch"));
  CHECK(contains(refusal(rig.rt, {}, 0), "numbers is empty"));
  CHECK(contains(refusal(rig.rt, {}, (std::uint64_t{1} << 40) + 1), "at most 2^40"));
  CHECK(refusal(rig.rt, {.workers = 4, .depth = 1}) == "accepted");
}

TEST_CASE("loader: batches are read-only, and know what they hold") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 10});
  auto batch = loader.next();
  const ebb::Tensor x = batch->field("x");
  CHECK_THROWS_AS(x.data<float>(), std::invalid_argument);
  CHECK_THROWS_AS(x.narrow(0, 1, 2).fill_(0), std::invalid_argument);
  CHECK(x.storage().owner_kind() == ebb::OwnerKind::loader);
  CHECK_THROWS_WITH_AS(batch->field(2), "[Batch::field] there is no field 2: the data set has 2",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(batch->field("z"), "[Batch::field] there is no field \"z\" among x, y",
                       std::invalid_argument);
  CHECK_THROWS_AS(batch->fields<3>(), std::invalid_argument);
  const ebb::Batch moved = std::move(*batch);
  CHECK(moved.field(1).elements() == 10);
  CHECK_THROWS_AS(batch->field(0), std::invalid_argument);
}

TEST_CASE("loader: figures say what was delivered, and by whom it was filled") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 10, .workers = 0, .depth = 2, .leases = 3});
  drain(loader);
  const ebb::LoaderStats stats = loader.stats();
  CHECK(stats.delivered == 10);
  CHECK(stats.filled_inline == 10);
  CHECK(stats.filled_by_workers == 0);
  CHECK(stats.slots == 5);
  CHECK(stats.slots_leased == 0);
  CHECK(stats.memory.live >= stats.slot_bytes * 5);
}
