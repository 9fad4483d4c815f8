// SPDX-License-Identifier: Apache-2.0
// Who lives how long: leases, loaders with work under way, and iterations that wait for none of it.
// [load.slots] [gc.count]
#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

using ebb::Loader;
using ebb::test::bytes_of;
using ebb::test::Numbers;
using std::chrono::steady_clock;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

// A load that stays in sample 0 of each epoch until it is let go.
struct Gate {
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};

  Numbers numbers() {
    return {.count = 100, .before = [this](std::uint64_t index, const ebb::SampleContext&) {
              if (index == 0) {
                entered = true;
                while (!open) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
              }
            }};
  }
  void wait_entered() const {
    while (!entered) {
      std::this_thread::yield();
    }
  }
};

}  // namespace

TEST_CASE("lease: a view keeps its slot, and the bytes in it, when the batch is gone") {
  Rig rig;
  for (const unsigned workers : {0u, 2u}) {
    Loader loader(rig.rt, Numbers{}, {.batch = 5, .workers = workers});
    ebb::Tensor view;
    std::string bytes;
    {
      const auto batch = loader.next();
      view = batch->field("x").narrow(0, 1, 2);
      bytes = bytes_of(view);
    }
    CHECK(loader.stats().slots_leased == 1);
    ebb::test::drain(loader);
    loader.begin_epoch(1);
    ebb::test::drain(loader);
    CHECK(bytes_of(view) == bytes);
    view = {};
    CHECK(loader.stats().slots_leased == 0);
  }
}

TEST_CASE("lease: views outlive batch, loader and runtime, and may be dropped on any thread") {
  std::vector<ebb::Tensor> views;
  std::vector<std::string> bytes;
  std::vector<ebb::Batch> batches;
  {
    Rig rig;
    {
      Loader loader(rig.rt, Numbers{}, {.batch = 5, .workers = 2, .leases = 4});
      for (int n = 0; n < 3; ++n) {
        views.push_back(loader.next()->field("x"));
        bytes.push_back(bytes_of(views.back()));
      }
      batches.push_back(std::move(*loader.next()));
    }
    CHECK(bytes_of(views[0]) == bytes[0]);
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    CHECK(bytes_of(views[i]) == bytes[i]);
  }
  CHECK(batches[0].field("y").elements() == 5);
  CHECK(batches[0].indices().size() == 5);
  std::jthread([some = std::move(views)]() mutable { some.clear(); }).join();
  batches.clear();
}

TEST_CASE("lease: keeping a view of a batch copies it and gives the slot back") {
  Rig rig;
  Loader loader(rig.rt, Numbers{}, {.batch = 5});
  ebb::Loop loop(rig.rt);
  ebb::Tensor kept;
  std::string bytes;
  for (auto& it : loop.over(loader)) {
    const ebb::Tensor x = it.batch().field("x");
    bytes = bytes_of(x);
    kept = it.keep(x);
    break;
  }
  CHECK(loader.stats().slots_leased == 0);
  CHECK(bytes_of(kept) == bytes);
  CHECK(kept.storage().owner_kind() == ebb::OwnerKind::runtime);
}

TEST_CASE("loader: its destructor leaves a load that does not end, says so, and nothing crashes") {
  Gate gate;
  Rig rig;
  std::optional<Loader> loader;
  loader.emplace(rig.rt, gate.numbers(),
                 ebb::LoaderOptions{.batch = 10, .workers = 1, .shuffle = false});
  loader->begin_epoch(0);
  gate.wait_entered();
  const auto start = steady_clock::now();
  loader.reset();
  const auto took = steady_clock::now() - start;
  CHECK(took >= std::chrono::milliseconds(1900));
  CHECK(took < std::chrono::milliseconds(4000));
  CHECK(rig.log.count("batch 0 of epoch 0 is being filled") == 1);
  CHECK(rig.log.count("at sample 0") == 1);
  gate.open = true;  // the load goes on in memory that it holds itself
}

TEST_CASE("loader: its destructor does not wait for what has not begun, nor for a whole batch") {
  Rig rig;
  std::atomic<int> loads{0};
  const Numbers slow{.count = 100000, .before = [&loads](std::uint64_t, const auto&) {
                       ++loads;
                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                     }};
  const auto start = steady_clock::now();
  {
    Loader loader(rig.rt, slow, {.batch = 50000, .workers = 2, .depth = 4});
    loader.begin_epoch(0);
    while (loads == 0) {
      std::this_thread::yield();
    }
  }
  CHECK(steady_clock::now() - start < std::chrono::milliseconds(1500));
  CHECK(rig.log.count("Loader") == 0);
}

TEST_CASE("loader: its destructor runs the tasks of an executor that has no workers") {
  // What a TBB arena is when the host's global_control allows one thread.
  const auto executor = ebb::make_jthread_executor("none", 1);
  ebb::test::LogLines log;
  ebb::Runtime rt({.load_executor = executor.get(), .log = log.hook()});
  const auto start = steady_clock::now();
  {
    Loader loader(rt, Numbers{}, {.batch = 10, .workers = 2});
    CHECK(loader.next().has_value());
  }
  CHECK(steady_clock::now() - start < std::chrono::milliseconds(1500));
  CHECK(log.count("Loader") == 0);
}

TEST_CASE("loader: a new epoch cancels fills that are under way") {
  Rig rig;
  Loader loader(rig.rt, Numbers{1000}, {.batch = 10, .workers = 2, .depth = 4});
  for (std::uint64_t epoch = 0; epoch < 300; ++epoch) {
    loader.begin_epoch(epoch);
    for (std::uint64_t seq = 0; seq < epoch % 4; ++seq) {
      const auto batch = loader.next();
      REQUIRE(batch->epoch() == epoch);
      REQUIRE(batch->seq() == seq);
      REQUIRE(batch->field("x").span<const float>()[2] == static_cast<float>(epoch));
    }
  }
}

TEST_CASE("loader: no iteration counts what a loader makes, on whatever thread") {
  Rig rig;
  for (const unsigned workers : {0u, 1u}) {
    std::mutex mutex;
    std::vector<ebb::Tensor> made;  // load's tensors, which outlive every iteration
    const Numbers data{.count = 40, .before = [&](std::uint64_t, const ebb::SampleContext&) {
                         ebb::Tensor tensor = ebb::zeros({4});
                         const std::lock_guard lock(mutex);
                         made.push_back(std::move(tensor));
                       }};
    {
      Loader loader(rig.rt, data, {.batch = 10, .workers = workers});
      ebb::Loop loop(rig.rt, {.deadline = ebb::Milliseconds(10), .warmup = 0});
      std::vector<ebb::Tensor> views;
      for (int n = 0; n < 4; ++n) {
        ebb::Iteration it(loop);
        const ebb::Tensor mine = ebb::zeros({4});
        CHECK(mine.storage().owner_kind() == ebb::OwnerKind::iteration);
        const auto batch = loader.next();  // filled here, or elsewhere: under an open iteration
        views.push_back(batch->field("y"));
        CHECK(views.back().storage().owner_kind() == ebb::OwnerKind::loader);
        const ebb::Tensor after = ebb::zeros({4});
        CHECK(after.storage().owner_kind() == ebb::OwnerKind::iteration);
      }
      loop.finish();
      CHECK(loop.stats().stragglers == 0);
    }
    REQUIRE(made.size() == 40);
    for (const ebb::Tensor& tensor : made) {
      CHECK(tensor.storage().owner_kind() == ebb::OwnerKind::loader);
    }
    CHECK(rig.rt.stats().storages_late == 0);
    CHECK(rig.rt.stats().storages_unowned == 0);
  }
}

// The acceptance case of GoTorch's collector, where the main loop waited for the loader's tensors.
TEST_CASE("loader: an iteration closes at once while a loader holds a tensor for a second") {
  Rig rig;
  std::atomic<bool> holds{false};
  std::atomic<bool> measured{false};
  const Numbers data{.count = 20, .before = [&](std::uint64_t index, const ebb::SampleContext&) {
                       if (index == 0) {
                         const ebb::Tensor held = ebb::zeros({1000});
                         holds = true;
                         std::this_thread::sleep_for(std::chrono::seconds(1));
                         while (!measured) {  // a slow machine took more than a second
                           std::this_thread::yield();
                         }
                       }
                     }};
  Loader loader(rig.rt, data, {.batch = 10, .workers = 1, .shuffle = false});
  ebb::Loop loop(rig.rt, {.warmup = 0});
  std::vector<steady_clock::duration> closes;
  for (int n = 0; n < 21; ++n) {
    ebb::Iteration it(loop);
    if (n == 0) {
      loader.begin_epoch(0);  // in an iteration: neither the load nor its task may become its own
    }
    while (!holds) {
      std::this_thread::yield();
    }
    ebb::Tensor mine = ebb::zeros({1000});
    mine = {};
    const auto start = steady_clock::now();
    CHECK(it.close().clean());
    closes.push_back(steady_clock::now() - start);
  }
  measured = true;
  std::nth_element(closes.begin(), closes.begin() + 10, closes.end());
  CHECK(closes[10] < std::chrono::milliseconds(10));
  loop.finish();
  CHECK(loader.next()->size() == 10);
}
