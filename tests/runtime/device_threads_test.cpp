// SPDX-License-Identifier: Apache-2.0
// Several threads on one device: loops of their own, tensors that change hands, streams that come
// and go, while others trim and read figures. Each tensor's content is looked at by the device.
// [alloc.cuda] [gc.owner] [rt.stream]
#include "device_fixture.h"
#include "support/test_settings.h"

#include <ebb/alloc/error.h>
#include <ebb/runtime/graph.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

using namespace ebb;
using ebb::test::DeviceRuntime;

namespace {

constexpr std::int64_t count = 500;

// A tensor whose elements are all number, once its stream has got there.
struct Numbered {
  Tensor tensor;
  std::int32_t number = 0;
};

class Crowd : public DeviceRuntime {
 public:
  Crowd() : DeviceRuntime({.log = [](LogLevel, std::string_view) {}}) {
    machine.set_delay_all(std::chrono::microseconds(2));
    machine.set_event_lag_all(std::chrono::microseconds(100));
  }

  // A thread's loop; what it hands over outlives its iterations.
  void work(std::uint64_t seed, std::uint64_t rounds) {
    std::mt19937_64 random(seed);
    Loop loop(rt, {.name = "crowd", .deadline = Milliseconds(0)});
    DeviceStream own(rt, device);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      {
        Iteration it(loop);
        const StreamScope scope(rt, own);
        for (int n = 0; n < 3; ++n) {
          step(it, own, random);
        }
      }
      if (random() % 16 == 0) {
        own = DeviceStream(rt, device);
      }
    }
    loop.finish();
  }
  // Meanwhile, by another thread.
  void look_on() {
    while (!ended) {
      static_cast<void>(rt.trim());
      static_cast<void>(rt.stats());
      static_cast<void>(rt.memory(device));
      static_cast<void>(rt.cache_info(device));
      static_cast<void>(rt.pinned_memory(device));
      static_cast<void>(rt.empty_cache(device));
      std::this_thread::yield();
    }
  }
  void drop_all() {
    const std::lock_guard lock(mutex_);
    handed_.clear();
  }

  std::atomic<int> wrong{0};
  std::atomic<bool> ended{false};

 private:
  void step(Iteration& it, Stream own, std::mt19937_64& random) {
    const auto number = static_cast<std::int32_t>(random());
    Numbered made{full({count}, number, DType::i32), number};
    switch (random() % 5) {
      case 0:
        made.tensor = it.keep(made.tensor);
        hand_over(std::move(made));
        break;
      case 1:
        hand_over(std::move(made));  // a straggler: adopted, and dropped by whoever has it then
        break;
      case 2: {
        const DeviceStream brief(rt, device);
        make_wait(rt, brief, own);
        made.tensor.used_on(brief);
        look_at(made, brief);
        break;
      }
      default:
        look_at(made, own);
    }
    if (const Numbered taken = take(random); taken.tensor.defined()) {
      launch(rt, own, {taken.tensor}, [&](void*) { look_at(taken, own); });
    }
  }
  void look_at(const Numbered& what, Stream on) {
    launch_host(rt, on,
                [this, data = static_cast<const std::int32_t*>(what.tensor.storage().data()),
                 number = what.number] {
                  wrong += std::count(data, data + count, number) == count ? 0 : 1;
                });
  }
  // Its stream may end before it is taken: then it is only looked at by who made it.
  void hand_over(Numbered what) {
    const std::lock_guard lock(mutex_);
    handed_.push_back(std::move(what));
  }
  Numbered take(std::mt19937_64& random) {
    const std::lock_guard lock(mutex_);
    if (handed_.size() < 8) {
      return {};
    }
    std::swap(handed_[random() % handed_.size()], handed_.back());
    Numbered taken = std::move(handed_.back());
    handed_.pop_back();
    return taken;
  }

  std::mutex mutex_;  // guards handed_
  std::vector<Numbered> handed_;
};

}  // namespace

TEST_CASE("device threads: loops, hand-overs, streams, trims and figures at the same time") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  const std::uint64_t rounds = ebb::test::stress(20000) / 40;
  Crowd crowd;
  {
    std::jthread onlooker([&] { crowd.look_on(); });
    {
      std::vector<std::jthread> threads;
      for (std::uint64_t i = 0; i < 3; ++i) {
        threads.emplace_back([&crowd, seed, i, rounds] { crowd.work(seed + i, rounds); });
      }
    }
    crowd.ended = true;
  }
  crowd.drop_all();
  REQUIRE(crowd.machine.drain(std::chrono::seconds(60)));
  CHECK(crowd.wrong == 0);
  crowd.rt.empty_cache(crowd.device);
  CHECK(crowd.rt.stats().storages_live == 0);
  CHECK(crowd.rt.memory(crowd.device).blocks_live == 0);
}

TEST_CASE("device threads: each captures steps again and again, with functions on joined streams") {
  const std::uint64_t rounds = ebb::test::stress(20000) / 20;
  DeviceRuntime f({.log = [](LogLevel, std::string_view) {}});
  std::atomic<std::uint64_t> captures{0};
  const auto work = [&](Stream own) {
    Loop loop(f.rt);
    const StreamScope scope(f.rt, own);
    const DeviceStream side(f.rt, f.device);
    const Tensor result = zeros(f.on(own), {count}, DType::i32);
    GraphStep step(loop, own);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (i % 3 == 2) {
        step.recapture();
      }
      step.run([&](Iteration&) {
        const Tensor made = empty({count}, DType::i32);
        make_wait(f.rt, side, own);
        launch_host(f.rt, side, [] {});
        make_wait(f.rt, own, side);
        made.fill_(7);
        result.copy_(made);
      });
      if (i < 5) {
        loop.wait_plan();
      }
      if (i % 50 == 0) {
        f.rt.empty_cache(f.device);
      }
    }
    CHECK(ebb::test::sum(result) == 7 * count);
    captures += step.stats().captures;
  };
  {
    const std::jthread one([&] { work(f.a); });
    const std::jthread other([&] { work(f.b); });
  }
  CHECK(captures > rounds / 6);
}
