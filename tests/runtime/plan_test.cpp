// SPDX-License-Identifier: Apache-2.0
// Loops whose iterations repeat: tensors get planned addresses, and whatever a loop's body does
// besides, nothing is lost and nothing overlaps. [alloc.replay]
#include "plan_rig.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::Body;
using ebb::test::quiet;
using ebb::test::run;
using ebb::test::step;

namespace {

// Runs the loop until its iterations follow a plan.
LoopPlans learn(Loop& loop, const Body& body, Place at = Place::here()) {
  run(loop, 4, body, at);
  REQUIRE(loop.wait_plan());
  run(loop, 2, body, at);
  REQUIRE(loop.plans().size() == 1);
  REQUIRE(loop.plans()[0].plans.size() == 1);
  return loop.plans()[0];
}

// How many iterations followed and how many blocks were displaced, while body ran so often more.
PlanSetStats more(Loop& loop, int iterations, const Body& body, Place at = Place::here()) {
  const PlanSetStats before = loop.plans()[0].stats;
  run(loop, iterations, body, at);
  PlanSetStats after = loop.plans()[0].stats;
  after.iterations -= before.iterations;
  after.followed -= before.followed;
  after.displaced -= before.displaced;
  return after;
}

constexpr Place here_and_nowhere_else{"plan_test", 1};

}  // namespace

TEST_CASE("loop plans: iterations that repeat follow a plan made elsewhere") {
  Runtime rt(quiet());
  Loop loop(rt);
  const LoopPlans plans = learn(loop, step, here_and_nowhere_else);
  CHECK(plans.place == here_and_nowhere_else);
  CHECK(plans.plans[0].buffers == 6);
  CHECK(plans.plans[0].height == plans.plans[0].max_live);
  const PlanSetStats stats = more(loop, 10, step, here_and_nowhere_else);
  CHECK(stats.followed == 10);
  CHECK(stats.displaced == 0);
}

TEST_CASE("loop plans: none where they are switched off, or memory is the system's own") {
  Runtime rt(quiet());
  Loop loop(rt, {.plans = false});
  run(loop, 6, step);
  CHECK(loop.wait_plan());
  CHECK(loop.plans().empty());

  RuntimeOptions options = quiet();
  options.bypass = true;
  Runtime bypassing(options);
  Loop other(bypassing);
  run(other, 6, step);
  CHECK(other.wait_plan());
  CHECK(other.plans()[0].plans.empty());
}

TEST_CASE("loop plans: each place where iterations are opened has its own") {
  Runtime rt(quiet());
  Loop loop(rt);
  for (int i = 0; i < 8; ++i) {
    run(loop, 1, step, {"train", 1});
    run(loop, 1, [](Iteration& it) { (void)full(it, {50}, 1); }, {"evaluate", 2});
    REQUIRE(loop.wait_plan());
  }
  REQUIRE(loop.plans().size() == 2);
  for (const LoopPlans& plans : loop.plans()) {
    CHECK(plans.plans.size() == 1);
    CHECK(plans.stats.followed >= 5);
    CHECK(plans.stats.displaced == 0);
  }
}

TEST_CASE("loop plans: what tasks make is no part of the plan") {
  for (const unsigned threads : {1U, 2U}) {
    Runtime rt(quiet(threads));
    Loop loop(rt);
    const auto body = [&](Iteration& it) {
      step(it);
      parallel_for(rt.step_executor(), 64, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          (void)full(it, {10 + i}, 1);
        }
      });
      it.spawn([&it] { (void)full(it, {77}, 1); });
      step(it);
    };
    CHECK(learn(loop, body, here_and_nowhere_else).plans[0].buffers == 12);
    const PlanSetStats stats = more(loop, 20, body, here_and_nowhere_else);
    CHECK(stats.followed == 20);
    CHECK(stats.displaced == 0);
  }
}

TEST_CASE("loop plans: tensors that tasks drop are dropped by the join") {
  Runtime rt(quiet());
  Loop loop(rt);
  const auto body = [&](Iteration& it) {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 16; ++i) {
      tensors.push_back(full(it, {1000}, i));
    }
    parallel_for(rt.step_executor(), 16, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        tensors[static_cast<std::size_t>(i)] = Tensor();
      }
    });
    step(it);
  };
  const LoopPlans plans = learn(loop, body, here_and_nowhere_else);
  CHECK(plans.plans[0].buffers == 22);
  // What comes after the join has the memory of what went before it.
  CHECK(plans.plans[0].height == Bytes{16 * 4032});
  const PlanSetStats stats = more(loop, 20, body, here_and_nowhere_else);
  CHECK(stats.followed == 20);
  CHECK(stats.displaced == 0);
}

TEST_CASE("loop plans: a kept tensor stays whole, and its place is learned") {
  Runtime rt(quiet());
  Loop loop(rt);
  std::vector<Tensor> kept;
  int count = 0;
  const auto body = [&](Iteration& it) {
    step(it);
    Tensor loss = full(it, {500}, ++count);
    if (count % 4 == 0) {
      kept.push_back(it.keep(loss));
    }
    step(it);
  };
  run(loop, 40, body, here_and_nowhere_else);
  REQUIRE(loop.wait_plan());
  run(loop, 40, body, here_and_nowhere_else);
  REQUIRE(kept.size() == 20);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK(kept[i].data<const float>()[0] == static_cast<float>(4 * (i + 1)));
    CHECK(kept[i].data<const float>()[499] == static_cast<float>(4 * (i + 1)));
  }
  REQUIRE(loop.wait_plan());
  CHECK(loop.plans()[0].plans[0].outliving == 1);
  CHECK(more(loop, 8, body, here_and_nowhere_else).followed == 8);
}

TEST_CASE("loop plans: stragglers stay whole when the next iterations follow the plan") {
  for (const Policy policy : {Policy::adopt, Policy::revoke}) {
    Runtime rt(quiet());
    Loop loop(rt, {.deadline = Milliseconds(0), .policy = policy});
    learn(loop, step, here_and_nowhere_else);
    Tensor leaked;
    run(
        loop, 1,
        [&](Iteration& it) {
          step(it);
          leaked = full(it, {5000}, 7);
        },
        here_and_nowhere_else);
    std::optional<Tensor> more_leaked;
    run(
        loop, 1, [&](Iteration& it) { more_leaked = full(it, {100}, 3); }, here_and_nowhere_else);
    run(loop, 20, step, here_and_nowhere_else);
    if (policy == Policy::adopt) {
      CHECK(leaked.data<const float>()[0] == 7);
      CHECK(leaked.data<const float>()[4999] == 7);
      CHECK(more_leaked->data<const float>()[99] == 3);
    } else {
      CHECK_THROWS_AS((void)leaked.data<const float>(), RevokedError);
    }
  }
}

TEST_CASE("loop plans: nested iterations are one block of their parent's plan") {
  Runtime rt(quiet());
  Loop outer(rt, {.name = "outer"});
  Loop inner(rt, {.name = "inner"});
  const auto body = [&](Iteration& it) {
    const Tensor around = full(it, {2000}, 1);
    for (int i = 0; i < 3; ++i) {
      Iteration nested(inner, {"nested", 7});
      step(nested);
    }
    CHECK(around.data<const float>()[1999] == 1);
  };
  for (int i = 0; i < 12; ++i) {
    run(outer, 1, body, here_and_nowhere_else);
    REQUIRE(inner.wait_plan());
    REQUIRE(outer.wait_plan());
  }
  const LoopPlans nested = inner.plans()[0];
  const LoopPlans plans = outer.plans()[0];
  REQUIRE(!nested.plans.empty());
  REQUIRE(!plans.plans.empty());
  CHECK(plans.plans[0].buffers == 4);
  CHECK(plans.plans[0].height == Bytes{8000 + nested.plans[0].height.count()});
  CHECK(more(outer, 5, body, here_and_nowhere_else).followed == 5);
  CHECK(inner.plans()[0].stats.followed == nested.stats.followed + 15);
  CHECK(inner.plans()[0].stats.displaced == 0);
}

TEST_CASE("loop plans: a nested iteration of the same place goes unplanned") {
  Runtime rt(quiet());
  Loop loop(rt);
  const auto body = [&](Iteration& it) {
    step(it);
    Iteration nested(loop, here_and_nowhere_else);
    step(nested);
  };
  CHECK(learn(loop, body, here_and_nowhere_else).plans[0].buffers == 6);
  CHECK(more(loop, 5, body, here_and_nowhere_else).followed == 5);
}

TEST_CASE("loop plans: long-lived state made within an iteration is left out") {
  Runtime rt(quiet());
  Loop loop(rt);
  std::vector<Tensor> state;
  const auto body = [&](Iteration& it) {
    step(it);
    if (state.size() < 3) {
      const LongLived own(rt);
      state.push_back(full(rt, {3000}, static_cast<double>(state.size())));
    }
    step(it);
  };
  CHECK(learn(loop, body, here_and_nowhere_else).plans[0].buffers == 12);
  CHECK(more(loop, 10, body, here_and_nowhere_else).followed == 10);
  for (std::size_t i = 0; i < state.size(); ++i) {
    CHECK(state[i].data<const float>()[2999] == static_cast<float>(i));
  }
}

TEST_CASE("loop plans: threads that iterate side by side share the plans, not the memory") {
  Runtime rt(quiet());
  Loop loop(rt);
  learn(loop, step, here_and_nowhere_else);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&loop] { run(loop, 50, step, here_and_nowhere_else); });
  }
  run(loop, 50, step, here_and_nowhere_else);
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(loop.plans()[0].stats.followed >= 200);
  CHECK(loop.plans()[0].stats.displaced == 0);
}

TEST_CASE("loop plans: an iteration that ends by an exception leaves the plan of use") {
  Runtime rt(quiet());
  Loop loop(rt);
  learn(loop, step, here_and_nowhere_else);
  for (int i = 0; i < 5; ++i) {
    try {
      Iteration it(loop, here_and_nowhere_else);
      const Tensor first = full(it, {100}, 0);
      throw std::runtime_error("out");
    } catch (const std::runtime_error&) {
    }
  }
  CHECK(more(loop, 5, step, here_and_nowhere_else).followed == 5);
}

TEST_CASE("loop plans: a thread that ends within an iteration takes the plan's range along") {
  Runtime rt(quiet());
  Loop loop(rt);
  learn(loop, step, here_and_nowhere_else);
  Tensor left;
  std::optional<Iteration> open;
  std::thread([&] {
    open.emplace(loop, here_and_nowhere_else);
    left = full(*open, {100}, 4);
  }).join();
  run(loop, 20, step, here_and_nowhere_else);
  CHECK(left.data<const float>()[99] == 4);
  open.reset();
  run(loop, 20, step, here_and_nowhere_else);
  CHECK(left.data<const float>()[99] == 4);
}

TEST_CASE("loop plans: two runtimes taking turns on a thread") {
  Runtime a(quiet());
  Runtime b(quiet());
  Loop loop(a);
  Loop other(b);
  const auto body = [&](Iteration& it) {
    step(it);
    const Tensor foreign = full(b, {100}, 5);
    step(it);
    CHECK(foreign.data<const float>()[99] == 5);
  };
  run(loop, 10, body, here_and_nowhere_else);
  REQUIRE(loop.wait_plan());
  run(loop, 10, body, here_and_nowhere_else);
  run(other, 10, step);
  REQUIRE(other.wait_plan());
  CHECK(other.plans()[0].plans.size() == 1);
}
