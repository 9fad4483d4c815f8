// SPDX-License-Identifier: Apache-2.0
// Plans under hosts of all kinds: executors that refuse, forget or run at once, runtimes and loops
// that end while something is planned, limits, forks, and many threads that wait. [alloc.replay]
#include "plan_rig.h"
#include "support/child.h"
#include "support/sanitized.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::chain;
using ebb::test::quiet;

namespace {

constexpr Place site{"plan_hosts_test", 1};
constexpr int long_count = 30000;

void run(Loop& loop, int iterations) {
  ebb::test::run_chains(loop, iterations, site);
}

// Many tensors of mixed sizes and lifetimes.
void long_step(Iteration& it, int count) {
  std::vector<Tensor> alive(97);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i * 7919 % 97);
    alive[at] = zeros(it, {16 + (i * 7907) % 3001});
  }
}

class HostExecutor final : public Executor {
 public:
  enum class Way { refuses, forgets, runs_at_once };
  explicit HostExecutor(Way way) : way_(way) {}
  HostExecutor(const HostExecutor&) = delete;
  HostExecutor& operator=(const HostExecutor&) = delete;
  HostExecutor(HostExecutor&&) = delete;
  HostExecutor& operator=(HostExecutor&&) = delete;
  ~HostExecutor() override {
    for (Task* const task : forgotten_) {
      task->execute();
    }
  }
  unsigned concurrency() const noexcept override { return 2; }
  void submit(Task& task) override {
    ++asked_;
    if (way_ == Way::refuses) {
      throw std::runtime_error("refused");
    }
    task.bind_to_current_owner();
    if (way_ == Way::runs_at_once) {
      return task.execute();
    }
    forgotten_.push_back(&task);
  }
  bool run_one() noexcept override { return false; }
  int asked() const { return asked_; }

 private:
  Way way_;
  int asked_ = 0;
  std::vector<Task*> forgotten_;
};

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// How long it takes to plan what long_step makes.
double seconds_of_long_plan() {
  HostExecutor host(HostExecutor::Way::refuses);
  RuntimeOptions options = quiet();
  options.load_executor = &host;
  Runtime rt(options);
  Loop loop(rt);
  for (int k = 0; k < 2; ++k) {
    Iteration it(loop, site);
    long_step(it, long_count);
  }
  return seconds_of([&] { (void)loop.wait_plan(); });
}

}  // namespace

TEST_CASE("plan hosts: executors that refuse, forget, or run at once") {
  using Way = HostExecutor::Way;
  for (const Way way : {Way::refuses, Way::forgets, Way::runs_at_once}) {
    HostExecutor host(way);
    RuntimeOptions options = quiet();
    options.load_executor = &host;
    Runtime rt(options);
    Loop loop(rt);
    run(loop, 8);
    CHECK(host.asked() >= 1);
    CHECK(loop.plans()[0].plans.size() == (way == Way::runs_at_once ? 1 : 0));
    CHECK(loop.wait_plan());
    run(loop, 2);
    CHECK(loop.plans()[0].stats.followed >= 2);
    // What repeats later is asked for again.
    const int before = host.asked();
    for (int i = 0; i < 4; ++i) {
      Iteration it(loop, site);
      chain(it);
      chain(it, 70);
    }
    CHECK(host.asked() > before);
  }
}

TEST_CASE("plan hosts: the runtime ends at once while something long is planned") {
  const double whole = seconds_of_long_plan();
  for (int i = 0; i < 2; ++i) {
    auto rt = std::make_unique<Runtime>(quiet());
    auto loop = std::make_unique<Loop>(*rt);
    for (int k = 0; k < 2; ++k) {
      Iteration it(*loop, site);
      long_step(it, long_count);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(i * 20));
    const double ending = seconds_of([&] {
      if (i == 0) {
        loop.reset();
      }
      rt.reset();
    });
    CHECK(ending < whole / 3);
  }
}

TEST_CASE("plan hosts: many threads wait for plans, and within an iteration") {
  Runtime rt(quiet());
  Loop loop(rt);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over.load()) {
        (void)loop.wait_plan(Milliseconds(1));
        (void)loop.plans();
      }
    });
  }
  for (std::uint32_t i = 0; i < 60; ++i) {
    Iteration it(loop, {"plan_hosts_test", 10 + i / 8});
    chain(it, 50 + i / 4);
    CHECK(loop.wait_plan(Milliseconds::max()));
    chain(it);
  }
  over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(loop.wait_plan());
}

TEST_CASE("plan hosts: iterations in ten thousand places") {
  Runtime rt(quiet());
  Loop loop(rt);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t line = 1; line <= 10000; ++line) {
      Iteration it(loop, {"many", line});
      const Tensor t = full(it, {10}, 1);
    }
  }
  CHECK(loop.plans().size() == 10000);
  CHECK(loop.wait_plan());
}

TEST_CASE("plan hosts: what the limit refuses within an iteration, and what it allows between") {
  for (const bool plans : {true, false}) {
    RuntimeOptions options = quiet();
    options.memory_limit = 16_MiB;
    Runtime rt(options);
    Loop loop(rt, {.plans = plans});
    const auto body = [&](Iteration& it) {
      const Tensor a = full(it, {1 << 20}, 1);
      const Tensor b = full(it, {1 << 20}, 2);
      CHECK(a.data<const float>()[(1 << 20) - 1] == 1);
      CHECK(b.data<const float>()[(1 << 20) - 1] == 2);
    };
    const auto some = [&](int n) {
      for (int i = 0; i < n; ++i) {
        Iteration it(loop, site);
        body(it);
      }
    };
    some(4);
    loop.wait_plan();
    some(4);
    for (int i = 0; i < 5; ++i) {
      {
        Iteration it(loop, site);
        const Tensor a = full(it, {1 << 20}, 1);
        CHECK_THROWS_AS((void)zeros(it, {(13 << 20) / 4}), OutOfMemory);
        const Tensor b = full(it, {1 << 20}, 2);
        CHECK(a.data<const float>()[7] == 1);
      }
      some(2);
      {
        const Tensor much = zeros(rt, {(14 << 20) / 4});
        CHECK(much.data<const float>()[9] == 0);
      }
      some(2);
      {
        const Tensor much = zeros(rt, {(9 << 20) / 4});
        Iteration it(loop, site);
        const Tensor a = full(it, {1 << 20}, 1);
        CHECK_THROWS_AS((void)full(it, {1 << 20}, 2), OutOfMemory);
        CHECK(a.data<const float>()[7] == 1);
      }
    }
    some(4);
    if (plans) {
      const auto before = loop.plans()[0].stats.followed;
      some(4);
      CHECK(loop.plans()[0].stats.followed == before + 4);
    }
  }
}

TEST_CASE("plan hosts: a fork within a followed iteration") {
  if (ebb::test::is_sanitized()) {
    MESSAGE("skipped: sanitizers have locks too, which hang threads that such a child starts");
    return;
  }
  Runtime rt(quiet());
  Loop loop(rt);
  run(loop, 4);
  REQUIRE(loop.wait_plan());
  run(loop, 2);
  for (int i = 0; i < 3; ++i) {
    Iteration it(loop, site);
    const Tensor a = full(it, {100}, 3);
    const int status = ebb::test::run_in_child(
        [&] {
          bool fine = a.data<const float>()[99] == 3;
          try {
            (void)full(it, {100}, 3);
            fine = false;
          } catch (const ForkedError&) {
          }
          try {
            (void)loop.wait_plan();
            fine = false;
          } catch (const ForkedError&) {
          }
          Runtime own(quiet(1));
          Loop own_loop(own);
          run(own_loop, 4);
          fine = own_loop.wait_plan() && fine;
          run(own_loop, 4);
          fine = own_loop.plans()[0].stats.followed >= 4 && fine;
          std::_Exit(fine ? 0 : 1);
          return 0;
        },
        60);
    CHECK(ebb::test::exited_with_0(status));
    chain(it);
  }
  const auto before = loop.plans()[0].stats.followed;
  run(loop, 4);
  CHECK(loop.plans()[0].stats.followed == before + 4);
}

TEST_CASE("plan hosts: tasks open iterations of the loop while their opener helps") {
  for (const unsigned threads : {1U, 2U, 4U}) {
    Runtime rt(quiet(threads));
    Loop loop(rt);
    Loop inner(rt, {.name = "inner"});
    std::atomic<int> wrong{0};
    for (int i = 0; i < 40; ++i) {
      if (i == 10) {
        REQUIRE(loop.wait_plan());
        REQUIRE(inner.wait_plan());
      }
      Iteration it(loop, site);
      const Tensor around = full(it, {1000}, i);
      parallel_for(rt.step_executor(), 8, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          Iteration same(loop, site);
          const Tensor mine = full(same, {1000}, static_cast<double>(k));
          parallel_for(rt.step_executor(), 4, 1, [&](std::int64_t b, std::int64_t e) {
            for (std::int64_t j = b; j < e; ++j) {
              Iteration nested(inner, {"nested", 5});
              const Tensor t = full(nested, {300}, static_cast<double>(j));
              const Tensor u = full(nested, {200}, static_cast<double>(j + 1));
              wrong += t.data<const float>()[299] != static_cast<float>(j);
              wrong += u.data<const float>()[199] != static_cast<float>(j + 1);
            }
          });
          wrong += mine.data<const float>()[999] != static_cast<float>(k);
        }
      });
      wrong += around.data<const float>()[999] != static_cast<float>(i);
      chain(it);
    }
    CHECK(wrong == 0);
    CHECK(loop.stats().stragglers == 0);
    CHECK(inner.stats().iterations == 40 * 32);
  }
}
