// SPDX-License-Identifier: Apache-2.0
// What load throws reaches the loop where it belongs, and no wait is without an end. [load.error]
#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

using ebb::Loader;
using ebb::LoadError;
using ebb::LoadErrorKind;
using ebb::test::contains;
using ebb::test::Numbers;

namespace {

// A clock that moves when the test says so. Its waits end every real millisecond, so that the
// waiter looks again: neither a move of the clock nor a notification can be missed.
class SteppedClock final : public ebb::Clock {
 public:
  ebb::TimePoint now() const noexcept override {
    return ebb::TimePoint(std::chrono::seconds(seconds_.load()));
  }
  void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                  ebb::TimePoint until) override {
    ++waits_;
    if (now() < until) {
      changed.wait_for(lock, std::chrono::milliseconds(1));
    }
  }
  void advance(int seconds) { seconds_ += seconds; }
  unsigned waits() const { return waits_; }

 private:
  std::atomic<int> seconds_{1000};
  std::atomic<unsigned> waits_{0};
};

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

// Sample 53, at batch 5 of 10 samples each, does what bad says.
Numbers numbers_with(std::function<void(const ebb::SampleContext&)> bad) {
  return {.count = 100, .before = [bad](std::uint64_t index, const ebb::SampleContext& context) {
            if (index == 53) {
              bad(context);
            }
          }};
}

std::optional<LoadError> failure(Loader& loader) {
  try {
    loader.next();
  } catch (const LoadError& error) {
    return error;
  }
  return std::nullopt;
}

// Runs to the failure and demands that it comes at its place, stays, and can be left behind.
LoadError check_failure(Loader& loader) {
  loader.begin_epoch(2);
  for (std::uint64_t seq = 0; seq < 5; ++seq) {
    const auto batch = loader.next();
    REQUIRE(batch.has_value());
    CHECK(batch->seq() == seq);
  }
  const auto error = failure(loader);
  REQUIRE(error.has_value());
  CAPTURE(error->what());
  CHECK(error->info().dataset == "numbers");
  CHECK(error->info().index == 53);
  CHECK(error->info().epoch == 2);
  CHECK(error->info().seq == 5);
  CHECK(contains(error->what(), "[Loader::next] data set numbers, sample 53, epoch 2, batch 5"));
  const auto again = failure(loader);
  REQUIRE(again.has_value());
  CHECK(std::string(again->what()) == error->what());
  loader.begin_epoch(3);
  CHECK(loader.next()->seq() == 0);
  return *error;
}

}  // namespace

TEST_CASE("loader: whatever load throws comes as a LoadError at its batch") {
  Rig rig;
  for (const unsigned workers : {0u, 1u, 2u}) {
    CAPTURE(workers);
    const ebb::LoaderOptions options{.batch = 10, .workers = workers, .shuffle = false};
    {
      Loader loader(rig.rt, numbers_with([](auto&) { throw std::runtime_error("no luck"); }),
                    options);
      const LoadError error = check_failure(loader);
      CHECK(error.kind() == LoadErrorKind::user);
      CHECK(contains(error.what(), "no luck"));
    }
    {
      Loader loader(rig.rt, numbers_with([](auto&) { throw 5; }), options);
      CHECK(contains(check_failure(loader).what(), "no std::exception"));
    }
    {
      Loader loader(rig.rt, numbers_with([](auto&) { throw std::bad_alloc(); }), options);
      CHECK(check_failure(loader).kind() == LoadErrorKind::memory);
    }
    {
      Loader loader(rig.rt, numbers_with([](auto& c) {
                      c.fail(LoadErrorKind::corrupt, "decode", 17, "bad huffman");
                    }),
                    options);
      const LoadError error = check_failure(loader);
      CHECK(error.kind() == LoadErrorKind::corrupt);
      CHECK(error.info().stage == "decode");
      CHECK(error.info().offset == 17);
      CHECK(error.info().text == "bad huffman");
    }
    {
      const auto bare = [](auto&) {
        throw LoadError("my_reader", {.kind = LoadErrorKind::io, .text = "gone"});
      };
      Loader loader(rig.rt, numbers_with(bare), options);
      const LoadError error = check_failure(loader);
      CHECK(error.kind() == LoadErrorKind::io);
      CHECK(contains(error.what(), "[my_reader] gone"));
    }
  }
}

TEST_CASE("loader: the cause of a failure is nested in it") {
  Rig rig;
  Loader loader(rig.rt, numbers_with([](auto&) { throw std::out_of_range("the cause"); }),
                {.batch = 100});
  try {
    loader.next();
    FAIL("nothing was thrown");
  } catch (const LoadError& error) {
    CHECK_THROWS_WITH_AS(std::rethrow_if_nested(error), "the cause", std::out_of_range);
  }
}

TEST_CASE("loader: a Local that cannot be made is a failure of its batch") {
  struct Broken : Numbers {
    struct Local {
      Local() { throw std::runtime_error("no decoder"); }
    };
    void load(std::uint64_t, Local&, const ebb::SampleContext&, ebb::SampleWriter&) const {}
  };
  Rig rig;
  for (const unsigned workers : {0u, 1u}) {
    Loader loader(rig.rt, Broken{}, {.batch = 10, .workers = workers});
    const auto error = failure(loader);
    REQUIRE(error.has_value());
    CHECK(contains(error->what(), "no decoder"));
    CHECK(error->info().seq == 0);
    CHECK_FALSE(error->info().index.has_value());
  }
}

TEST_CASE("loader: an error ends a loop's epoch, and the next over goes on") {
  Rig rig;
  std::atomic<bool> broken{true};
  Loader loader(rig.rt, numbers_with([&broken](auto&) {
                  if (broken) {
                    throw std::runtime_error("once");
                  }
                }),
                {.batch = 10, .shuffle = false});
  ebb::Loop loop(rig.rt);
  int steps = 0;
  const auto run = [&] {
    for (auto& it : loop.over(loader)) {
      static_cast<void>(it);
      ++steps;
    }
  };
  CHECK_THROWS_AS(run(), LoadError);
  CHECK(steps == 5);
  CHECK(loader.state().seq == 5);
  broken = false;
  run();
  CHECK(steps == 15);
  loop.finish();
}

TEST_CASE("loader: next ends at its deadline when load does not, and says where it is") {
  SteppedClock clock;
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .clock = &clock, .log = log.hook()});
  std::atomic<bool> stuck{false};
  std::atomic<bool> release{false};
  Loader loader(rt, numbers_with([&](auto&) {
                  stuck = true;
                  while (!release) {
                    std::this_thread::yield();
                  }
                }),
                {.batch = 10, .workers = 1, .shuffle = false});
  loader.begin_epoch(0);
  for (int n = 0; n < 5; ++n) {
    CHECK(loader.next().has_value());
  }
  while (!stuck) {
    std::this_thread::yield();
  }
  const unsigned waits = clock.waits();
  std::jthread time([&] {
    while (clock.waits() == waits) {
      std::this_thread::yield();
    }
    clock.advance(31);
  });
  const auto error = failure(loader);
  time.join();
  REQUIRE(error.has_value());
  CAPTURE(error->what());
  CHECK(error->kind() == LoadErrorKind::stalled);
  CHECK(error->info().seq == 5);
  CHECK(contains(error->what(), "waited 30000 ms"));
  CHECK(contains(error->what(), "batch 5 of epoch 0 is being filled"));
  CHECK(contains(error->what(), "at sample 53"));
  release = true;
  CHECK(loader.next()->seq() == 5);  // nothing was lost
}

TEST_CASE("loader: next ends at its deadline when all slots are leased, and names the holders") {
  Rig rig;
  for (const unsigned workers : {0u, 2u}) {
    CAPTURE(workers);
    Loader loader(rig.rt, Numbers{},
                  {.batch = 10,
                   .workers = workers,
                   .depth = 2,
                   .deadline = ebb::Milliseconds(20),
                   .leases = 2});
    std::vector<ebb::Batch> held;
    for (int n = 0; n < 4; ++n) {
      held.push_back(std::move(*loader.next()));
    }
    const ebb::Tensor view = held[2].field(0);
    const auto error = failure(loader);
    REQUIRE(error.has_value());
    CAPTURE(error->what());
    CHECK(error->kind() == LoadErrorKind::stalled);
    CHECK(contains(error->what(), "all 4 slots are leased"));
    CHECK(contains(error->what(), "batch 1 of epoch 0 held by 1 reference,"));
    CHECK(contains(error->what(), "batch 2 of epoch 0 held by 2 references"));
    CHECK(contains(error->what(), "LoaderOptions::leases"));
    held.erase(held.begin());
    CHECK(loader.next()->seq() == 4);
  }
}

TEST_CASE("loader: a batch dropped on another thread wakes next") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 10, .workers = 0, .depth = 1, .leases = 1});
  auto first = loader.next();
  auto second = loader.next();
  std::jthread dropper([batch = std::move(*first)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const ebb::Batch last = std::move(batch);
  });
  CHECK(loader.next()->seq() == 2);
}

namespace {

// Refuses tasks, or keeps them until run_all.
class OddExecutor final : public ebb::Executor {
 public:
  bool refuses = false;
  std::vector<ebb::Task*> kept;

  unsigned concurrency() const noexcept override { return 2; }
  void submit(ebb::Task& task) override {
    if (refuses) {
      throw std::bad_alloc();
    }
    task.bind_to_current_owner();
    kept.push_back(&task);
  }
  bool run_one() noexcept override {
    if (kept.empty()) {
      return false;
    }
    ebb::Task* const task = kept.back();
    kept.pop_back();
    task->execute();
    return true;
  }
};

}  // namespace

TEST_CASE("loader: next fills what an executor refuses or never runs") {
  OddExecutor executor;
  ebb::test::LogLines log;
  ebb::Runtime rt({.load_executor = &executor, .log = log.hook()});
  SUBCASE("refused") {
    executor.refuses = true;
    Loader loader(rt, Numbers{}, {.batch = 10, .workers = 2});
    CHECK(ebb::test::drain(loader).size() == 10);
    CHECK(log.count("the executor refuses load tasks") == 1);
  }
  SUBCASE("never run: what is run after the loader is gone does nothing") {
    {
      Loader loader(rt, Numbers{}, {.batch = 10, .workers = 2});
      CHECK(ebb::test::drain(loader).size() == 10);
      CHECK(loader.stats().filled_inline == 10);
      CHECK(executor.kept.size() == 2);
    }
    CHECK(log.count("2 load tasks were not run by their executor") == 1);
    while (executor.run_one()) {
    }
    CHECK(executor.kept.empty());
  }
}
