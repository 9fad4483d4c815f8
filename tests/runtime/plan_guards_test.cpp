// SPDX-License-Identifier: Apache-2.0
// Loops with plans whose guards, scopes, threads and runtimes end in other orders than they should:
// an iteration's way along its plan is its own thread's only, and ends with it. [alloc.replay]
#include "plan_rig.h"
#include "support/child.h"
#include "support/sanitized.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <thread>

using namespace ebb;
using ebb::test::chain;
using ebb::test::quiet;

namespace {

constexpr Place site{"plan_guards_test", 1};
constexpr Place other_site{"plan_guards_test", 2};

void run(Loop& loop, int iterations, Place at = site) {
  ebb::test::run_chains(loop, iterations, at);
}

void learn(Loop& loop, Place at = site) {
  run(loop, 4, at);
  REQUIRE(loop.wait_plan());
  run(loop, 2, at);
}

PlanSetStats stats_of(const Loop& loop, Place at = site) {
  for (const LoopPlans& plans : loop.plans()) {
    if (plans.place == at) {
      return plans.stats;
    }
  }
  return {};
}

// Another thread, which opens an iteration, makes its first tensor if told to, and goes on later.
class Elsewhere {
 public:
  Elsewhere(Loop& loop, bool asks_first)
      : thread_([this, &loop, asks_first] {
          const auto wait = [this] {
            is_open_.release();
            may_end_.acquire();
          };
          Iteration it(loop, site);
          if (!asks_first) {
            wait();
          }
          chain(it, 100, asks_first ? std::function<void()>(wait) : std::function<void()>());
        }) {
    is_open_.acquire();
  }
  void end() {
    may_end_.release();
    thread_.join();
  }

 private:
  std::binary_semaphore is_open_{0};
  std::binary_semaphore may_end_{0};
  std::thread thread_;
};

// That what another thread makes in an iteration of the loop is followed as planned.
void check_followed_elsewhere(Runtime& rt, Loop& loop, bool asks_first,
                              const std::function<void()>& meanwhile = {}) {
  const PlanSetStats before = stats_of(loop);
  Elsewhere elsewhere(loop, asks_first);
  if (meanwhile) {
    meanwhile();
  }
  (void)full(rt, {100}, 0);
  elsewhere.end();
  CHECK(stats_of(loop).iterations == before.iterations + 1);
  CHECK(stats_of(loop).followed == before.followed + 1);
  CHECK(stats_of(loop).displaced == before.displaced);
}

}  // namespace

TEST_CASE("plan guards: an iteration that repeats and closes after its runtime") {
  auto rt = std::make_unique<Runtime>(quiet());
  auto loop = std::make_unique<Loop>(*rt);
  {
    Iteration it(*loop, site);
    chain(it);
  }
  {
    Iteration it(*loop, site);
    chain(it);
    rt.reset();
  }
  loop.reset();
}

TEST_CASE("plan guards: an iteration that follows its plan and closes after its runtime") {
  auto rt = std::make_unique<Runtime>(quiet());
  auto loop = std::make_unique<Loop>(*rt);
  learn(*loop);
  Tensor left;
  {
    Iteration it(*loop, site);
    chain(it);
    left = full(it, {100}, 8);
    rt.reset();
  }
  loop.reset();
  CHECK(left.data<const float>()[99] == 8);
}

TEST_CASE("plan guards: the record of a guard destroyed out of order, taken by another thread") {
  for (const bool asks_first : {false, true}) {
    Runtime rt(quiet());
    Loop loop(rt);
    Loop inner_loop(rt);
    learn(loop);
    std::optional<Iteration> outer(std::in_place, loop, site);
    std::optional<Iteration> inner(std::in_place, inner_loop, other_site);
    outer.reset();
    // The slot then names outer again.
    check_followed_elsewhere(rt, loop, asks_first, [&inner] { inner.reset(); });
  }
}

TEST_CASE("plan guards: a scope around the close of its own iteration") {
  for (const bool asks_first : {false, true}) {
    Runtime rt(quiet());
    Loop loop(rt);
    learn(loop);
    std::optional<Iteration> it(std::in_place, loop, site);
    {
      const OwnerScope scope(it->owner());
      CHECK_THROWS_AS(it->close(), std::invalid_argument);
      it.reset();
    }
    check_followed_elsewhere(rt, loop, asks_first);
  }
}

TEST_CASE("plan guards: a guard destroyed within a scope of the runtime") {
  for (const bool asks_first : {false, true}) {
    Runtime rt(quiet());
    Loop loop(rt);
    learn(loop);
    std::optional<Iteration> it(std::in_place, loop, site);
    {
      const LongLived scope(rt);
      it.reset();
    }
    const PlanSetStats before = stats_of(loop);
    Elsewhere elsewhere(loop, asks_first);
    (void)full(rt, {100}, 0);
    run(loop, 1, other_site);
    elsewhere.end();
    CHECK(stats_of(loop).iterations == before.iterations + 1);
    CHECK(stats_of(loop).followed == before.followed + 1);
  }
}

TEST_CASE("plan guards: an outer guard whose runtime goes while the inner one is another's") {
  auto rt = std::make_unique<Runtime>(quiet());
  auto loop = std::make_unique<Loop>(*rt);
  Runtime other(quiet());
  Loop other_loop(other);
  std::optional<Iteration> outer(std::in_place, *loop, site);
  std::optional<Iteration> inner(std::in_place, other_loop, other_site);
  chain(*inner);
  outer.reset();
  loop.reset();
  rt.reset();
  inner.reset();
  run(other_loop, 4);
}

TEST_CASE("plan guards: a scope whose iteration and runtime go") {
  auto rt = std::make_unique<Runtime>(quiet());
  auto loop = std::make_unique<Loop>(*rt);
  Runtime other(quiet());
  Loop other_loop(other);
  learn(*loop);
  std::optional<Iteration> it(std::in_place, *loop, site);
  {
    const LongLived scope(other);
    it.reset();
    loop.reset();
    rt.reset();
    (void)full(other, {100}, 0);
  }
  (void)full(other, {100}, 0);
  run(other_loop, 4);
}

TEST_CASE("plan guards: threads that end with guards open, after an iteration and before one") {
  for (const bool goes_first : {false, true}) {
    auto rt = std::make_unique<Runtime>(quiet());
    auto loop = std::make_unique<Loop>(*rt);
    learn(*loop);
    std::optional<Iteration> open;
    Tensor left;
    std::thread([&] {
      run(*loop, 2);
      open.emplace(*loop, site);
      left = full(*open, {100}, 5);
    }).join();
    run(*loop, 4);
    if (goes_first) {
      rt.reset();
      open.reset();
      loop.reset();
    } else {
      open.reset();
      run(*loop, 4);
      loop.reset();
      rt.reset();
    }
    CHECK(left.data<const float>()[99] == 5);
  }
}
TEST_CASE("plan guards: a body of parallel_for that closes the iteration around it") {
  for (const bool asks_first : {false, true}) {
    Runtime rt(quiet(1));
    Loop loop(rt);
    learn(loop);
    std::optional<Iteration> it(std::in_place, loop, site);
    parallel_for(rt.step_executor(), 1, 1, [&](std::int64_t, std::int64_t) { it.reset(); });
    check_followed_elsewhere(rt, loop, asks_first);
  }
}

TEST_CASE("plan guards: a body of parallel_for that opens an iteration for what comes after") {
  Runtime rt(quiet(1));
  Loop loop(rt);
  Loop inner_loop(rt);
  learn(loop);
  learn(inner_loop, other_site);
  const PlanSetStats before = stats_of(loop);
  {
    Iteration it(loop, site);
    std::optional<Iteration> inner;
    parallel_for(rt.step_executor(), 1, 1,
                 [&](std::int64_t, std::int64_t) { inner.emplace(inner_loop, other_site); });
    chain(*inner);
    inner.reset();
    chain(it);
  }
  CHECK(stats_of(loop).displaced == before.displaced);
  CHECK(stats_of(inner_loop, other_site).displaced == 0);
  run(loop, 4);
  CHECK(stats_of(loop).followed >= before.followed + 4);
}

TEST_CASE("plan guards: a child forked by a body of parallel_for makes a runtime of its own") {
  if (ebb::test::is_sanitized()) {
    MESSAGE("skipped: sanitizers have locks too, which hang threads that such a child starts");
    return;
  }
  Runtime rt(quiet(1));
  Loop loop(rt);
  learn(loop);
  for (const bool asks_first : {false, true}) {
    int status = -1;
    {
      Iteration it(loop, site);
      const Tensor first = asks_first ? full(it, {100}, 0) : Tensor();
      const pid_t parent = ::getpid();
      bool fine = true;
      parallel_for(rt.step_executor(), 1, 1, [&](std::int64_t, std::int64_t) {
        const pid_t child = ::fork();
        if (child != 0) {
          ::waitpid(child, &status, 0);
        }
      });
      if (::getpid() != parent) {
        ::alarm(60);
        for (int i = 0; i < 2; ++i) {
          Runtime own(quiet(1));
          const Tensor a = full(own, {100}, 3);
          Loop own_loop(own);
          run(own_loop, 6);
          fine = fine && a.data<const float>()[99] == 3;
        }
        ::_exit(fine ? 0 : 1);
      }
      chain(it);
    }
    CHECK(ebb::test::exited_with_0(status));
  }
}

TEST_CASE("plan guards: a thread goes on in an iteration whose guard and loop others have ended") {
  for (const bool asks_first : {false, true}) {
    Runtime rt(quiet());
    auto loop = std::make_unique<Loop>(rt);
    learn(*loop);
    std::optional<Iteration> open;
    std::binary_semaphore is_open{0};
    std::binary_semaphore may_go_on{0};
    std::thread opener([&] {
      open.emplace(*loop, site);
      const Tensor first = asks_first ? full(*open, {100}, 4) : Tensor();
      is_open.release();
      may_go_on.acquire();
      const Tensor second = full(rt, {100}, 5);
      CHECK(second.data<const float>()[99] == 5);
      CHECK((!asks_first || first.data<const float>()[99] == 4));
      Loop other(rt);
      run(other, 6, other_site);
    });
    is_open.acquire();
    open.reset();
    loop.reset();
    may_go_on.release();
    opener.join();
  }
}

TEST_CASE("plan guards: guards that nothing hides any more end in the order of their opening") {
  Runtime rt(quiet());
  Loop loop(rt);
  (void)full(rt, {100}, 0);
  std::optional<Iteration> first(std::in_place, loop, site);
  std::optional<Iteration> second(std::in_place, loop, other_site);
  std::optional<Iteration> third(std::in_place, loop, site);
  std::optional<Iteration> last(std::in_place, loop, other_site);
  third.reset();  // out of order
  last.reset();
  first.reset();
  second.reset();
  const Tensor mine = full(rt, {100}, 1);
  std::thread([&] { CHECK(full(rt, {100}, 2).data<const float>()[99] == 2); }).join();
  CHECK(mine.data<const float>()[99] == 1);
  run(loop, 4);
}
