// SPDX-License-Identifier: Apache-2.0
// Every way that work moves without TBB's own loops: tasks and nested loops on either executor, a
// user's threads, bound functions that run late, threads without an owner, several runtimes and
// loops at once. Mis-tagged storages are counted: there must be none. Run under ThreadSanitizer
// too, on jthreads. [gc.owner] [rt.exec]
#include "support/executor_choice.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::executor_choice;

namespace {

RuntimeOptions quiet(ExecutorKind kind = executor_choice()) {
  return {.threads = 3, .executor = kind, .log = [](LogLevel, std::string_view) {}};
}

std::vector<ExecutorKind> executors() {
  return executor_choice() == ExecutorKind::jthread
             ? std::vector{ExecutorKind::jthread}
             : std::vector{ExecutorKind::tbb, ExecutorKind::jthread};
}

// How many storages went to somebody else. Any thread.
class Mistagged {
 public:
  void check(const Tensor& made, const Owner& expected) {
    ++made_;
    wrong_ += made.storage().owner_record() == expected.record() ? 0 : 1;
  }
  void make(const Owner& expected) { check(empty({16}), expected); }
  int made() const { return made_; }
  int wrong() const { return wrong_; }

 private:
  std::atomic<int> made_{0};
  std::atomic<int> wrong_{0};
};

}  // namespace

TEST_CASE("owner paths: tasks, and parallel loops nested in them, inherit whoever spawned them") {
  for (const ExecutorKind kind : executors()) {
    Runtime rt(quiet(kind));
    Loop loop(rt, {.deadline = forever});
    Mistagged mistagged;
    for (int i = 0; i < 30; ++i) {
      Iteration it(loop);
      for (int task = 0; task < 4; ++task) {
        it.spawn([&] {
          mistagged.make(it);
          parallel_for(rt.step_executor(), 6, 1, [&](std::int64_t, std::int64_t) {
            mistagged.make(it);
            parallel_for(rt.step_executor(), 4, 1,
                         [&](std::int64_t, std::int64_t) { mistagged.make(it); });
            const LongLived own(rt);  // a task may well change over, for itself
            mistagged.make(rt.domain()->long_lived());
            parallel_for(rt.step_executor(), 4, 1, [&](std::int64_t, std::int64_t) {
              mistagged.make(rt.domain()->long_lived());
            });
          });
          mistagged.make(it);
        });
      }
      CHECK(it.close().clean());
    }
    CHECK(mistagged.made() >= 30 * 4 * 6);
    CHECK(mistagged.wrong() == 0);
    CHECK(rt.stats().storages_unowned == 0);
    CHECK(rt.stats().storages_late == 0);
  }
}

TEST_CASE("owner paths: a waiting thread takes tasks of another iteration and is itself again") {
  for (const ExecutorKind kind : executors()) {
    Runtime rt(quiet(kind));
    Mistagged mistagged;
    const auto host = [&] {
      Loop loop(rt, {.deadline = forever});
      for (int i = 0; i < 50; ++i) {
        Iteration it(loop);
        it.spawn([&] { mistagged.make(it); });
        parallel_for(rt.step_executor(), 12, 1, [&](std::int64_t, std::int64_t) {
          rt.step_executor().run_one();  // whosesoever it is
          mistagged.make(it);
        });
        mistagged.make(it);
        CHECK(it.close().clean());
      }
    };
    {
      std::jthread one(host);
      std::jthread two(host);
    }
    CHECK(mistagged.wrong() == 0);
  }
}

TEST_CASE("owner paths: a user's thread charges whom its bound function carries") {
  Runtime rt(quiet());
  Loop loop(rt, {.deadline = forever});
  Mistagged mistagged;
  for (int i = 0; i < 50; ++i) {
    Iteration it(loop);
    std::jthread worker(bind([&] {
      mistagged.make(it);
      parallel_for(rt.step_executor(), 6, 1,
                   [&](std::int64_t, std::int64_t) { mistagged.make(it); });
      std::jthread(bind([&] { mistagged.make(it); })).join();
      mistagged.make(it);
    }));
    CHECK(it.close().clean());  // waits for it
  }
  CHECK(mistagged.made() >= 50 * 4);
  CHECK(mistagged.wrong() == 0);
}

TEST_CASE("owner paths: a bound function that runs after its iteration has closed is late") {
  std::mutex mutex;
  std::string said;
  RuntimeOptions options = quiet();
  options.log = [&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    said += text;
  };
  Runtime rt(options);
  Loop loop(rt, {.deadline = Milliseconds(0), .warmup = 0});
  Mistagged mistagged;
  std::uint64_t late = 0;
  for (int i = 0; i < 20; ++i) {
    std::optional<Iteration> it(std::in_place, loop);
    auto bound = bind([&] {
      mistagged.make(rt.domain()->long_lived());
      parallel_for(rt.step_executor(), 6, 1,
                   [&](std::int64_t, std::int64_t) { mistagged.make(rt.domain()->long_lived()); });
      std::jthread(bind([&] { mistagged.make(rt.domain()->long_lived()); })).join();
    });
    CHECK(it->close().jobs_pending == 1);
    it.reset();
    Iteration next(loop);  // what the record may be used for now
    std::jthread(std::move(bound)).join();
    mistagged.make(next);
    late += 1 + 6 + 1;  // on whichever thread
    CHECK(rt.stats().storages_late == late);
  }
  CHECK(mistagged.wrong() == 0);
  CHECK(said.find("already closed") != std::string::npos);
  CHECK(rt.stats().storages_live == 0);
}

TEST_CASE("owner paths: a thread without an owner is told the remedy, and a runtime is one") {
  Runtime rt(quiet());
  Loop loop(rt);
  const Iteration elsewhere(loop);  // another thread's is no owner of this one's
  Mistagged mistagged;
  std::jthread([&] {
    CHECK_THROWS_WITH_AS(zeros({4}), doctest::Contains("name a Runtime"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(zeros({4}), doctest::Contains("ebb::bind"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(bind([] {}), doctest::Contains("[bind]"), std::invalid_argument);
    CHECK(rt.stats().storages_unowned == 0);
    mistagged.check(empty(rt, {4}), rt.domain()->long_lived());
    CHECK(rt.stats().storages_unowned == 1);
    parallel_for(rt.step_executor(), 8, 1, [&](std::int64_t, std::int64_t) {
      mistagged.check(empty(rt, {4}), rt.domain()->long_lived());
    });
  }).join();
  CHECK(mistagged.wrong() == 0);
  CHECK(rt.stats().storages_unowned == static_cast<std::uint64_t>(mistagged.made()));
}

TEST_CASE("owner paths: two runtimes alternate, and nest, on one thread") {
  Runtime first(quiet());
  Runtime second(quiet());
  Loop loop(first, {.deadline = forever});
  Loop second_loop(second, {.deadline = forever});
  Mistagged mistagged;
  const Owner first_own = first.domain()->long_lived();
  const Owner second_own = second.domain()->long_lived();
  for (int i = 0; i < 200; ++i) {
    mistagged.check(empty(first, {4}), first_own);
    mistagged.check(empty(second, {4}), second_own);
    Iteration it(loop);
    mistagged.make(it);
    mistagged.check(empty(second, {4}), second_own);  // within the other's iteration
    mistagged.check(empty(first, {4}), it);
    {
      Iteration nested(second_loop);
      const Tensor its = empty({4});
      mistagged.check(its, nested);
      mistagged.check(empty(first, {4}), first_own);
      mistagged.check(nested.keep(its), second_own);  // its parent is no iteration of another's
      parallel_for(first.step_executor(), 4, 1,
                   [&](std::int64_t, std::int64_t) { mistagged.make(nested); });
      CHECK(nested.close().clean());
    }
    mistagged.make(it);
    CHECK(it.close().clean());
  }
  CHECK(mistagged.wrong() == 0);
  CHECK(first.stats().storages_live == 0);
  CHECK(second.stats().storages_live == 0);
}

namespace {

// Opens and closes iterations on a runtime that others use too, with one tensor each for a reader
// on the executor every now and then.
void run_loop(Runtime& rt, int iterations, Mistagged& mistagged) {
  Loop loop(rt, {.deadline = forever});
  Tensor kept;
  for (int i = 0; i < iterations; ++i) {
    Iteration it(loop);
    const Tensor made = empty({16});
    mistagged.check(made, it);
    if (i % 64 == 0) {
      parallel_for(rt.step_executor(), 4, 1,
                   [&](std::int64_t, std::int64_t) { mistagged.make(it); });
      kept = it.keep(made);
      mistagged.check(kept, rt.domain()->long_lived());
    }
  }
  loop.finish();
  CHECK(loop.stats().iterations == static_cast<std::uint64_t>(iterations));
  CHECK(loop.stats().stragglers == 0);
}

}  // namespace

TEST_CASE("owner paths: four loops on four threads share runtimes, and charge nothing across") {
  constexpr int iterations = 10000;
  for (const ExecutorKind kind : executors()) {
    Runtime shared(quiet(kind));
    Runtime other(quiet(kind));
    Mistagged mistagged;
    {
      std::vector<std::jthread> crew;
      for (int thread = 0; thread < 4; ++thread) {
        crew.emplace_back(
            [&, thread] { run_loop(thread == 3 ? other : shared, iterations, mistagged); });
      }
    }
    CHECK(mistagged.made() >= 4 * iterations);
    CHECK(mistagged.wrong() == 0);
    for (Runtime* const rt : {&shared, &other}) {
      CHECK(rt->stats().storages_live == 0);
      CHECK(rt->stats().storages_unowned == 0);
      CHECK(rt->stats().storages_late == 0);
      CHECK(rt->stats().adopted_live == 0);
    }
  }
}
