// SPDX-License-Identifier: Apache-2.0
// Loops with plans whose guards, scopes, threads and runtimes end in other orders than they should:
// an iteration's way along its plan is its own thread's only, and ends with it. [alloc.replay]
#include "support/child.h"
#include "support/executor_choice.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

using namespace ebb;

namespace {

RuntimeOptions quiet(unsigned threads = 2) {
  RuntimeOptions options;
  options.threads = threads;
  options.log = [](LogLevel, std::string_view) {};
  options.executor = ebb::test::executor_choice();
  return options;
}

constexpr Place site{"plan_guards_test", 1};
constexpr Place other_site{"plan_guards_test", 2};

void step(Iteration& it, const std::function<void()>& after_first = {}) {
  Tensor before = full(it, {100}, 0);
  if (after_first) {
    after_first();
  }
  for (int i = 1; i < 6; ++i) {
    Tensor next = full(it, {100 * i}, i);
    CHECK(before.data<const float>()[0] == static_cast<float>(i - 1));
    before = std::move(next);
  }
}

void run(Loop& loop, int iterations, Place at = site) {
  for (int i = 0; i < iterations; ++i) {
    Iteration it(loop, at);
    step(it);
  }
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
          step(it, asks_first ? std::function<void()>(wait) : std::function<void()>());
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

}  // namespace

TEST_CASE("plan guards: an iteration that repeats and closes after its runtime") {
  auto rt = std::make_unique<Runtime>(quiet());
  auto loop = std::make_unique<Loop>(*rt);
  {
    Iteration it(*loop, site);
    step(it);
  }
  {
    Iteration it(*loop, site);
    step(it);
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
    step(it);
    left = full(it, {100}, 8);
    rt.reset();
  }
  loop.reset();
  CHECK(left.data<const float>()[99] == 8);
}
