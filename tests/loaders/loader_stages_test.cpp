// SPDX-License-Identifier: Apache-2.0
// Data sets in stages: who does which, what is kept, and that none of it changes a batch.
// [load.dataset] [load.cache] [load.pure]
#include "staged_numbers.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

using ebb::Bytes;
using ebb::Loader;
using ebb::LoaderOptions;
using ebb::LoadError;
using ebb::test::contains;
using ebb::test::digest;
using ebb::test::drain;
using ebb::test::StagedNumbers;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

std::vector<std::uint64_t> epochs(Loader& loader, std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t epoch = 0; epoch < count; ++epoch) {
    loader.begin_epoch(epoch);
    const auto some = drain(loader);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string refusal(ebb::Runtime& rt, ebb::AnyDataset data, const LoaderOptions& options) {
  try {
    const Loader loader(rt, std::move(data), options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

constexpr Bytes plenty{std::size_t{1} << 20};

}  // namespace

TEST_CASE("loader stages: batches are the same whoever does what, and whatever is kept") {
  Rig rig;
  Loader plain(rig.rt, StagedNumbers{}, {.batch = 7, .seed = 3, .workers = 0});
  const auto expected = epochs(plain, 3);
  REQUIRE(expected.size() == 45);
  for (const unsigned workers : {0u, 1u, 2u, 4u, 8u}) {
    for (const unsigned depth : {1u, 2u, 8u}) {
      for (const Bytes cache : {Bytes{}, plenty, Bytes{10'000}}) {
        for (const unsigned fetch_threads : {0u, 2u}) {
          CAPTURE(workers);
          CAPTURE(depth);
          CAPTURE(cache.count());
          CAPTURE(fetch_threads);
          Loader loader(rig.rt, StagedNumbers{},
                        {.batch = 7,
                         .seed = 3,
                         .workers = workers,
                         .depth = depth,
                         .cache = cache,
                         .fetch_threads = fetch_threads});
          CHECK(epochs(loader, 3) == expected);
        }
      }
    }
  }
}

TEST_CASE("loader stages: an epoch of kept samples decodes and fetches nothing") {
  Rig rig;
  for (const unsigned fetch_threads : {0u, 2u}) {
    CAPTURE(fetch_threads);
    const StagedNumbers data;
    Loader loader(rig.rt, data,
                  {.batch = 10, .workers = 2, .cache = plenty, .fetch_threads = fetch_threads});
    epochs(loader, 1);
    CHECK(data.counts->decoded == 100);
    CHECK(data.counts->fetched == 100);
    epochs(loader, 3);
    CHECK(data.counts->decoded == 100);
    CHECK(data.counts->fetched == 100);
    CHECK(data.counts->finished == 400);
    const ebb::LoaderStats stats = loader.stats();
    CHECK(stats.cache.samples == 100);
    CHECK(stats.cache.hits == 300);
    CHECK(stats.cache.misses == 100);
    CHECK(stats.cache.bytes <= plenty);
    CHECK(stats.decode.samples == 100);
    CHECK(stats.fetch.samples == 100);
    CHECK(stats.write.samples == 400);
    CHECK(stats.fetched == Bytes{});
  }
}

// An LRU cache of half of the samples has 15 % of them when they are asked for (field notes).
TEST_CASE("loader stages: half of the bytes keep half of the samples, and never more bytes") {
  Rig rig;
  const StagedNumbers data{.count = 2000};
  constexpr Bytes half{2000 / 2 * (16 + 192)};
  Loader loader(rig.rt, data, {.batch = 50, .workers = 2, .cache = half});
  epochs(loader, 1);
  const std::uint64_t before = data.counts->decoded;
  for (std::uint64_t epoch = 1; epoch < 4; ++epoch) {
    loader.begin_epoch(epoch);
    drain(loader);
    CHECK(loader.stats().cache.bytes <= half);
  }
  CHECK(data.counts->decoded - before <= 3 * 2000 * 52 / 100);
}

TEST_CASE("loader stages: what takes long for its bytes is kept rather than what does not") {
  Rig rig;
  const auto is_slow = [](std::uint64_t index) { return index % 4 == 0; };
  const StagedNumbers data{.count = 400, .before_decode = [&](std::uint64_t index) {
                             if (is_slow(index)) {
                               std::this_thread::sleep_for(std::chrono::milliseconds(2));
                             }
                           }};
  Loader loader(rig.rt, data, {.batch = 20, .workers = 0, .cache = Bytes{100 * (16 + 192)}});
  epochs(loader, 2);
  std::atomic<std::uint64_t> slow{0};
  const ebb::LoaderStats before = loader.stats();
  epochs(loader, 1);
  const auto busy = loader.stats().decode.busy - before.decode.busy;
  static_cast<void>(slow);
  // A fixed set of a quarter at random would leave three quarters of the slow ones: 150 ms.
  CHECK(busy < std::chrono::milliseconds(120));
}

TEST_CASE("loader stages: options that the data set cannot follow are refused, by name") {
  Rig rig;
  const ebb::test::Numbers whole;
  CHECK(contains(refusal(rig.rt, whole, {.cache = plenty}), "no decode stage"));
  CHECK(contains(refusal(rig.rt, whole, {.fetch_threads = 1}), "does not fetch"));
  CHECK(contains(refusal(rig.rt, StagedNumbers{}, {.fetch_threads = 65}), "at most 64"));
  CHECK(refusal(rig.rt, StagedNumbers{}, {.fetch_threads = 1}) == "accepted");
}

TEST_CASE("loader stages: what any stage throws comes at its batch, with its sample and source") {
  Rig rig;
  const auto bad = [](std::uint64_t index) {
    if (index == 53) {
      throw std::runtime_error("no luck");
    }
  };
  for (const unsigned fetch_threads : {0u, 2u}) {
    for (const unsigned workers : {0u, 1u, 4u}) {
      for (const int stage : {0, 1, 2}) {
        CAPTURE(fetch_threads);
        CAPTURE(workers);
        CAPTURE(stage);
        StagedNumbers data;
        (stage == 0   ? data.before_fetch
         : stage == 1 ? data.before_decode
                      : data.before_finish) = bad;
        Loader loader(
            rig.rt, data,
            {.batch = 10, .workers = workers, .shuffle = false, .fetch_threads = fetch_threads});
        loader.begin_epoch(2);
        for (std::uint64_t seq = 0; seq < 5; ++seq) {
          REQUIRE(loader.next()->seq() == seq);
        }
        std::string text;
        try {
          loader.next();
        } catch (const LoadError& error) {
          text = error.what();
        }
        CHECK(contains(text, "data set staged numbers, sample 53, epoch 2, batch 5"));
        CHECK(contains(text, "number 53"));
        CHECK(contains(text, "no luck"));
        loader.begin_epoch(3);
        CHECK(loader.next()->seq() == 0);
      }
    }
  }
}

TEST_CASE("loader stages: no more is fetched ahead than the limit and a sample for each thread") {
  Rig rig;
  std::mutex mutex;
  std::condition_variable changed;
  bool may_go_on = false;
  StagedNumbers data{.count = 1000, .before_decode = [&](std::uint64_t) {
                       std::unique_lock lock(mutex);
                       changed.wait_for(lock, std::chrono::seconds(20), [&] { return may_go_on; });
                     }};
  Loader loader(
      rig.rt, data,
      {.batch = 50, .workers = 1, .depth = 8, .fetch_threads = 2, .fetch_ahead = Bytes{80}});
  loader.begin_epoch(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // The batch that is handed out next is fetched in any case.
  CHECK(data.counts->fetched <= 50 + 2);
  CHECK(loader.stats().fetched <= Bytes{(50 + 2) * 8});
  {
    const std::lock_guard lock(mutex);
    may_go_on = true;
  }
  changed.notify_all();
  CHECK(drain(loader).size() == 20);
  CHECK(loader.stats().fetched == Bytes{});
}

TEST_CASE("loader stages: a fetch that does not come back holds up neither a wait nor the end") {
  Rig rig;
  auto mutex = std::make_shared<std::mutex>();
  auto changed = std::make_shared<std::condition_variable>();
  auto may_go_on = std::make_shared<bool>(false);
  StagedNumbers data{.before_fetch = [mutex, changed, may_go_on](std::uint64_t index) {
    std::unique_lock lock(*mutex);
    if (index == 3) {
      changed->wait_for(lock, std::chrono::seconds(30), [&] { return *may_go_on; });
    }
  }};
  std::string text;
  const auto start = std::chrono::steady_clock::now();
  {
    Loader loader(rig.rt, data,
                  {.batch = 10,
                   .workers = 1,
                   .shuffle = false,
                   .deadline = ebb::Milliseconds(100),
                   .fetch_threads = 1});
    try {
      loader.next();
    } catch (const LoadError& error) {
      text = error.what();
    }
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  CHECK(contains(text, "waits for sample 3 to be fetched from number 3"));
  CHECK(rig.log.count("stays alive") == 1);
  {
    const std::lock_guard lock(*mutex);
    *may_go_on = true;
  }
  changed->notify_all();
}

TEST_CASE("loader stages: epochs are left and begun anew while samples are fetched") {
  Rig rig;
  const StagedNumbers data{.count = 300};
  Loader loader(rig.rt, data,
                {.batch = 16, .workers = 2, .depth = 4, .cache = plenty, .fetch_threads = 2});
  Loader plain(rig.rt, StagedNumbers{.count = 300}, {.batch = 16, .workers = 0});
  for (std::uint64_t round = 0; round < 200; ++round) {
    loader.begin_epoch(round);
    plain.begin_epoch(round);
    for (std::uint64_t n = 0; n < round % 5; ++n) {
      CHECK(digest(*loader.next()) == digest(*plain.next()));
    }
  }
  CHECK(loader.stats().cache.samples <= 300);
}
