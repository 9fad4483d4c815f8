// SPDX-License-Identifier: Apache-2.0
// Samples that do not load, and what a run does without them. [load.error] [load.pure]
#include "staged_numbers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

using ebb::Loader;
using ebb::LoaderOptions;
using ebb::LoadError;
using ebb::OnError;
using ebb::test::contains;
using ebb::test::digest;
using ebb::test::Numbers;
using ebb::test::StagedNumbers;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

bool is_bad(std::uint64_t index) {
  return index == 130 || index == 7 || index == 131 || index == 999;
}

Numbers some_bad(std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>()) {
  return {.count = 1000, .before = [asked](std::uint64_t index, const ebb::SampleContext&) {
            if (is_bad(index)) {
              ++*asked;
              throw std::runtime_error("no luck with " + std::to_string(index));
            }
          }};
}

struct Epoch {
  std::vector<std::uint64_t> digests;
  std::map<std::uint64_t, int> times;  // by index
  std::int64_t samples = 0;
};

Epoch run(Loader& loader, std::uint64_t epoch) {
  Epoch all;
  loader.begin_epoch(epoch);
  while (const auto batch = loader.next()) {
    all.digests.push_back(digest(*batch));
    all.samples += batch->size();
    const ebb::Tensor y = batch->field("y");
    const auto values = y.span<const std::int64_t>();
    for (std::size_t row = 0; row < batch->indices().size(); ++row) {
      CHECK(values[row] == static_cast<std::int64_t>(batch->indices()[row]));
      ++all.times[batch->indices()[row]];
    }
    loader.closed(*batch);
  }
  return all;
}

}  // namespace

TEST_CASE("loader skips: a batch has one sample less, and all others come exactly once") {
  Rig rig;
  std::vector<std::uint64_t> expected;
  for (const unsigned workers : {0u, 1u, 4u}) {
    CAPTURE(workers);
    Loader loader(rig.rt, some_bad(),
                  {.batch = 32, .seed = 4, .workers = workers, .on_error = OnError::skip});
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      const Epoch all = run(loader, epoch);
      CHECK(all.samples == 996);
      CHECK(all.times.size() == 996);
      CHECK(std::none_of(all.times.begin(), all.times.end(),
                         [](const auto& it) { return it.second != 1 || is_bad(it.first); }));
      if (epoch == 1 && expected.empty()) {
        expected = all.digests;
      } else if (epoch == 1) {
        CHECK(all.digests == expected);
      }
    }
    CHECK(loader.stats().skipped == 4);
    std::set<std::uint64_t> known;
    for (const ebb::SkippedSample& it : loader.skipped()) {
      known.insert(it.index);
      CHECK(it.epoch == 0);
      CHECK(contains(it.reason, "no luck with " + std::to_string(it.index)));
    }
    CHECK(known == std::set<std::uint64_t>{7, 130, 131, 999});
  }
  CHECK(rig.log.count("it is left out from now on") == 12);
}

TEST_CASE("loader skips: another sample takes the place, the same one for any number of workers") {
  Rig rig;
  std::vector<std::uint64_t> expected;
  for (const unsigned workers : {0u, 1u, 4u}) {
    CAPTURE(workers);
    const auto asked = std::make_shared<std::atomic<int>>();
    Loader loader(rig.rt, some_bad(asked),
                  {.batch = 32, .seed = 4, .workers = workers, .on_error = OnError::substitute});
    Epoch all = run(loader, 0);
    CHECK(all.samples == 1000);
    CHECK(all.times.size() == 996);
    const Epoch second = run(loader, 1);
    CHECK(*asked == 4);  // not again in the second epoch
    all.digests.insert(all.digests.end(), second.digests.begin(), second.digests.end());
    if (expected.empty()) {
      expected = all.digests;
    }
    CHECK(all.digests == expected);
  }
}

TEST_CASE("loader skips: in stages too, with what was fetched and kept") {
  Rig rig;
  for (const OnError policy : {OnError::skip, OnError::substitute}) {
    for (const int stage : {0, 1, 2}) {
      CAPTURE(stage);
      StagedNumbers data{.count = 200};
      (stage == 0   ? data.before_fetch
       : stage == 1 ? data.before_decode
                    : data.before_finish) = [](std::uint64_t index) {
        if (index % 50 == 9) {
          throw std::runtime_error("no luck");
        }
      };
      std::vector<std::uint64_t> expected;
      for (const unsigned fetch_threads : {0u, 2u}) {
        Loader loader(rig.rt, data,
                      {.batch = 16,
                       .workers = 2,
                       .cache = ebb::Bytes{1 << 20},
                       .fetch_threads = fetch_threads,
                       .on_error = policy});
        const Epoch all = run(loader, 0);
        CHECK(all.times.size() == 196);
        CHECK(all.samples == (policy == OnError::skip ? 196 : 200));
        expected = expected.empty() ? all.digests : expected;
        CHECK(all.digests == expected);
        CHECK(run(loader, 1).times.size() == 196);
      }
    }
  }
}

TEST_CASE("loader skips: past the limit the run fails, and says why") {
  Rig rig;
  Loader loader(rig.rt, some_bad(),
                {.batch = 100, .shuffle = false, .on_error = OnError::skip, .skips_max = 2});
  std::string text;
  try {
    run(loader, 0);
  } catch (const LoadError& error) {
    text = error.what();
  }
  CHECK(contains(text, "skips_max = 2"));
  CHECK(contains(text, "no luck with 131"));
}

TEST_CASE("loader skips: a run that resumes has the batches that it would have had") {
  Rig rig;
  for (const OnError policy : {OnError::skip, OnError::substitute}) {
    const LoaderOptions options{.batch = 32, .seed = 4, .workers = 2, .on_error = policy};
    Loader whole(rig.rt, some_bad(), options);
    run(whole, 0);
    const Epoch second = run(whole, 1);
    for (const std::uint64_t stop : {0u, 1u, 13u, 31u}) {
      CAPTURE(stop);
      ebb::LoaderState state;
      {
        Loader loader(rig.rt, some_bad(), options);
        run(loader, 0);
        loader.begin_epoch(1);
        for (std::uint64_t n = 0; n < stop; ++n) {
          loader.closed(*loader.next());
        }
        state = loader.state();
        CHECK(state.skipped == std::vector<std::uint64_t>{7, 130, 131, 999});
      }
      const auto asked = std::make_shared<std::atomic<int>>();
      Loader loader(rig.rt, some_bad(asked), options);
      loader.restore(state);
      CHECK(loader.state() == state);
      const Epoch rest = run(loader, 1);
      CHECK(std::equal(rest.digests.begin(), rest.digests.end(),
                       second.digests.begin() + static_cast<std::ptrdiff_t>(stop),
                       second.digests.end()));
      CHECK(*asked == 0);  // what is known is not tried again
    }
  }
}

TEST_CASE("loader skips: a batch of which nothing loads has no samples") {
  Rig rig;
  const Numbers data{.count = 6, .before = [](std::uint64_t index, const ebb::SampleContext&) {
                       if (index < 3) {
                         throw std::runtime_error("no luck");
                       }
                     }};
  Loader loader(rig.rt, data, {.batch = 3, .shuffle = false, .on_error = OnError::skip});
  const auto first = loader.next();
  REQUIRE(first.has_value());
  CHECK(first->size() == 0);
  CHECK(first->field(0).shape() == ebb::Shape{0, 3});
  CHECK(loader.next()->size() == 3);
  loader.begin_epoch(1);
  CHECK(loader.next()->size() == 0);
  CHECK(loader.next()->size() == 3);
}
