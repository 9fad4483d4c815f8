// SPDX-License-Identifier: Apache-2.0
// A batch in the steady state makes no heap call and asks the system for nothing. DESIGN row 1.
#include "loader_fixture.h"
#include "support/malloc_interposer.h"

#include <ebb/loaders/combine.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

namespace {

// Loads that can be slowed down, and that tell which threads they ran on.
struct Loads {
  std::atomic<bool> slow{false};
  std::mutex mutex;
  std::set<std::thread::id> threads;  // guarded by mutex

  ebb::test::Numbers numbers() {
    return {.count = 640, .before = [this](std::uint64_t, const ebb::SampleContext& context) {
              context.scratch(ebb::Bytes{3000});
              if (slow) {
                const std::lock_guard lock(mutex);
                threads.insert(std::this_thread::get_id());
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
            }};
  }
  std::size_t threads_seen() {
    const std::lock_guard lock(mutex);
    return threads.size();
  }
};

void run_epoch(ebb::Loader& loader, std::uint64_t number) {
  loader.begin_epoch(number);
  while (const auto batch = loader.next()) {
    const auto [x, y] = batch->fields<2>();
    REQUIRE(x.span<const float>()[2] == static_cast<float>(number));
    loader.closed(*batch);
  }
}

}  // namespace

TEST_CASE("loader: in the steady state a batch makes no heap call, whoever fills it") {
  if (!ebb::test::heap_calls_counted()) {
    MESSAGE("skipped: a sanitizer build cannot count");
    return;
  }
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::ExecutorKind::jthread, .log = log.hook()});
  const std::vector<std::int64_t> lengths(640, 5);
  // One for each number of workers.
  const std::vector<ebb::OrderSpec> orders = {
      ebb::OrderSpec::bucketed({.window = 10, .lengths = lengths}), ebb::OrderSpec::shuffled(),
      ebb::OrderSpec::bucketed({.window = 70, .lengths = lengths})};
  for (const unsigned workers : {0u, 1u, 2u}) {
    CAPTURE(workers);
    Loads loads;
    ebb::Loader loader(rt, loads.numbers(),
                       {.batch = 8, .workers = workers, .order = orders[workers]});
    // Warm means that each worker has filled, and that next() has taken a ticket over; the latter
    // may not happen where workers are always quick.
    std::uint64_t number = 0;
    loads.slow = true;
    while (loads.threads_seen() < workers + 1 && number < 50) {
      loader.begin_epoch(number++);
      loader.next();
    }
    loads.slow = false;
    for (const std::uint64_t end = number + 5; number < end; ++number) {
      run_epoch(loader, number);
    }
    // Two threads that fill at the same moment for the first time need one more heap, which a
    // busy machine may put off: a bounded number of times, so some span of epochs is free of it.
    constexpr int spans = 10;
    bool steady = false;
    for (int span = 0; span < spans && !steady; ++span) {
      const ebb::test::HeapCalls before = ebb::test::heap_calls();
      const std::uint64_t source_calls = loader.stats().memory.source_calls;
      for (const std::uint64_t end = number + 5; number < end; ++number) {
        run_epoch(loader, number);
      }
      const ebb::test::HeapCalls after = ebb::test::heap_calls();
      steady = after.allocations == before.allocations && after.frees == before.frees &&
               loader.stats().memory.source_calls == source_calls;
    }
    CHECK(steady);
  }
}

TEST_CASE("loader: data sets made of others make no heap call of their own") {
  if (!ebb::test::heap_calls_counted()) {
    MESSAGE("skipped: a sanitizer build cannot count");
    return;
  }
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::ExecutorKind::jthread, .log = log.hook()});
  Loads loads;
  const ebb::AnyDataset half = ebb::subset(loads.numbers(), 0, 320);
  const ebb::AnyDataset data = ebb::transformed(ebb::concat({half, half}), "nothing",
                                                [](const auto& /*context*/, auto& /*writer*/) {});
  ebb::Loader loader(rt, data, {.batch = 8, .workers = 0});
  for (std::uint64_t number = 0; number < 3; ++number) {
    run_epoch(loader, number);
  }
  const ebb::test::HeapCalls before = ebb::test::heap_calls();
  run_epoch(loader, 3);
  const ebb::test::HeapCalls after = ebb::test::heap_calls();
  CHECK(after.allocations == before.allocations);
  CHECK(after.frees == before.frees);
}
