// SPDX-License-Identifier: Apache-2.0
// Many early breaks, and batches that die late and elsewhere, under timing that varies.
#include "loader_fixture.h"
#include "support/sanitized.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <thread>

using ebb::Loader;
using ebb::test::digest;
using ebb::test::Numbers;

namespace {

long rounds_of(long usual) {
  const char* const stress = std::getenv("EBB_STRESS");
  return stress != nullptr ? std::strtol(stress, nullptr, 10) : usual;
}

std::uint64_t seed_of_run() {
  const char* const text = std::getenv("EBB_TEST_SEED");
  const std::uint64_t seed =
      text != nullptr
          ? std::strtoull(text, nullptr, 10)
          : static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  MESSAGE("EBB_TEST_SEED=" << seed);
  return seed;
}

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

// Drops what it is given a little later, on its own thread.
class Dropper {
 public:
  explicit Dropper(std::uint64_t seed) : random_(seed, "dropper"), thread_([this] { run(); }) {}
  Dropper(const Dropper&) = delete;
  Dropper& operator=(const Dropper&) = delete;
  Dropper(Dropper&&) = delete;
  Dropper& operator=(Dropper&&) = delete;
  ~Dropper() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void take(ebb::Tensor tensor) {
    {
      const std::lock_guard lock(mutex_);
      tensors_.push_back(std::move(tensor));
    }
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!ended_ || !tensors_.empty()) {
      if (tensors_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const std::vector<ebb::Tensor> mine = std::exchange(tensors_, {});
      const std::uint64_t nap = random_.below(200);
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(nap));
      lock.lock();
    }
  }

  ebb::Random random_;
  std::mutex mutex_;  // guards the next two
  std::vector<ebb::Tensor> tensors_;
  bool ended_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("loader: a thousand early breaks leave threads and memory as they were") {
  Rig rig;
  for (const unsigned workers : {0u, 1u, 4u}) {
    CAPTURE(workers);
    Loader loader(rig.rt, Numbers{1000}, {.batch = 8, .workers = workers});
    ebb::Loop loop(rig.rt);
    long threads = 0;
    long memory = 0;
    const long rounds = rounds_of(1000);
    for (long round = 0; round < rounds; ++round) {
      std::uint64_t steps = 0;
      for (auto& it : loop.over(loader)) {
        REQUIRE(it.batch().epoch() == static_cast<std::uint64_t>(round));
        REQUIRE(it.batch().seq() == steps);
        if (++steps == 3) {
          break;
        }
      }
      if (round == rounds / 10) {
        threads = ebb::test::self_status("Threads:");
        memory = ebb::test::self_status("VmRSS:");
      }
    }
    loop.finish();
    CHECK(ebb::test::self_status("Threads:") <= threads);
    if (!ebb::test::is_sanitized()) {                           // a sanitizer keeps what was freed
      CHECK(ebb::test::self_status("VmRSS:") - memory < 1024);  // KiB
    }
    CHECK(loader.stats().slots_leased == 0);
    CHECK(loop.stats().stragglers == 0);
  }
}

TEST_CASE("loader: batches come whole and in order while their views die late, on another thread") {
  const std::uint64_t seed = seed_of_run();
  Rig rig;
  std::vector<std::uint64_t> expected;
  {
    Loader loader(rig.rt, Numbers{1000}, {.batch = 8, .seed = seed, .workers = 0});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      loader.begin_epoch(epoch);
      const auto some = ebb::test::drain(loader);
      expected.insert(expected.end(), some.begin(), some.end());
    }
  }
  ebb::Random random(seed, "views");
  for (long round = 0; round < std::max(1L, rounds_of(1000) / 100); ++round) {
    const auto workers = static_cast<unsigned>(random.below(4));
    const auto depth = static_cast<unsigned>(1 + random.below(4));
    CAPTURE(workers);
    CAPTURE(depth);
    Dropper dropper(seed);
    Loader loader(rig.rt, Numbers{1000},
                  {.batch = 8, .seed = seed, .workers = workers, .depth = depth, .leases = 1});
    std::vector<std::uint64_t> seen;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      loader.begin_epoch(epoch);
      while (const auto batch = loader.next()) {
        seen.push_back(digest(*batch));
        if (random.below(2) == 0) {
          dropper.take(batch->field(random.below(2)));
        }
      }
    }
    REQUIRE(seen == expected);
  }
}

TEST_CASE("loader: made and destroyed at any moment of its work") {
  ebb::Random random(seed_of_run(), "moments");
  Rig rig;
  for (long round = 0; round < std::max(1L, rounds_of(1000) / 5); ++round) {
    Loader loader(rig.rt, Numbers{500},
                  {.batch = 8, .workers = static_cast<unsigned>(random.below(4))});
    std::vector<ebb::Tensor> views;
    for (std::uint64_t n = random.below(4); n > 0; --n) {
      const auto batch = loader.next();
      if (views.size() < 2) {
        views.push_back(batch->field(0));
      }
    }
  }
  CHECK(rig.log.count("Loader") == 0);
}
