// SPDX-License-Identifier: Apache-2.0
// Threads that open, share and end guards in no order, in loops with plans: whatever becomes of the
// plans, every tensor stays whole. [alloc.replay] [gc.nest]
#include "plan_rig.h"
#include "support/test_settings.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::quiet;

namespace {

struct Loops {
  Loops(Runtime& rt, const LoopOptions& options) : one(rt, options), other(rt, options) {}
  Loop& any(std::uint64_t random) { return random % 2 == 0 ? one : other; }
  Loop one;
  Loop other;
};

// Guards of several threads, which any of them may destroy.
class Guards {
 public:
  using Guard = std::unique_ptr<Iteration>;

  void add(Guard guard) {
    const std::lock_guard lock(mutex_);
    guards_.push_back(std::move(guard));
  }
  Guard take(std::uint64_t random) {
    const std::lock_guard lock(mutex_);
    if (guards_.empty()) {
      return nullptr;
    }
    std::swap(guards_[random % guards_.size()], guards_.back());
    Guard taken = std::move(guards_.back());
    guards_.pop_back();
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<Guard> guards_;
};

struct Written {
  Tensor tensor;
  float value;

  bool is_whole() const {
    const float* const data = tensor.data<const float>();
    return data[0] == value && data[tensor.elements() - 1] == value;
  }
};

// One thread that opens, closes and allocates in no order. Returns how many tensors were not what
// they should be.
int misuse(std::uint64_t seed, Runtime& rt, Loops& loops, Guards& shared) {
  std::mt19937_64 random(seed);
  int wrong = 0;
  std::vector<std::unique_ptr<Iteration>> own;
  std::vector<Written> written;
  const auto write = [&](std::int64_t size) {
    const auto value = static_cast<float>(random() % 1000);
    written.push_back({full(rt, {size}, static_cast<double>(value)), value});
  };
  for (int i = 0; i < 400; ++i) {
    switch (random() % 10) {
      case 0:
      case 1:
        if (own.size() < 4) {
          const auto line = static_cast<std::uint32_t>(3 + own.size());
          own.push_back(
              std::make_unique<Iteration>(loops.any(random()), Place{"plan_guards_test", line}));
        }
        break;
      case 2:
        if (!own.empty()) {
          own.pop_back();
        }
        break;
      case 3:
        if (!own.empty() && random() % 3 == 0) {
          own.erase(own.begin() + static_cast<std::ptrdiff_t>(random() % own.size()));
        }
        break;
      case 4:
        if (!own.empty() && random() % 6 == 0) {
          shared.add(std::move(own.back()));
          own.pop_back();
        }
        break;
      case 5:
        if (random() % 6 == 0) {
          shared.take(random()).reset();
        }
        break;
      case 6: {
        const LongLived scope(rt);
        write(50);
        if (!own.empty() && random() % 4 == 0) {
          own.pop_back();
        }
        write(60);
        break;
      }
      case 7:
        parallel_for(rt.step_executor(), 3, 1,
                     [&](std::int64_t, std::int64_t) { (void)full(rt, {30}, 1); });
        break;
      default:
        for (int k = 0; k < 4; ++k) {
          write(100 * (k + 1));
        }
        while (written.size() > 12) {
          const auto gone = static_cast<std::ptrdiff_t>(random() % written.size());
          wrong += written[static_cast<std::size_t>(gone)].is_whole() ? 0 : 1;
          written.erase(written.begin() + gone);
        }
    }
  }
  while (!own.empty() && random() % 4 != 0) {
    own.pop_back();
  }
  for (auto& guard : own) {
    shared.add(std::move(guard));  // which this thread leaves open
  }
  for (const Written& w : written) {
    wrong += w.is_whole() ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("plan disorder: threads that open and end guards in no order") {
  const std::uint64_t seed = ebb::test::test_seed();
  CAPTURE(seed);
  const std::uint64_t rounds = 1 + ebb::test::stress(20'000) / 4'000;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    auto rt = std::make_unique<Runtime>(quiet());
    const LoopOptions options{.deadline = Milliseconds(0)};
    auto loops = std::make_unique<Loops>(*rt, options);
    Guards shared;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] { wrong += misuse(seed + 10 * round + t, *rt, *loops, shared); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    CHECK(wrong == 0);
    if (round % 2 == 0) {
      rt.reset();
    }
    while (shared.take(0) != nullptr) {
    }
    loops.reset();
  }
}
