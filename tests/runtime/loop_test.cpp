// SPDX-License-Identifier: Apache-2.0
// Loops and guards as a user writes them. DESIGN section 3, [rt.loop] [gc.keep]
#include "support/executor_choice.h"

#include <ebb/runtime/loop.h>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using std::chrono::milliseconds;

namespace {

RuntimeOptions quiet() {
  RuntimeOptions options;
  options.threads = 2;
  options.log = [](LogLevel, std::string_view) {};
  options.executor = ebb::test::executor_choice();
  return options;
}

// Counts as batches: what a host's own queue looks like.
struct Numbers {
  using batch_type = int;
  explicit Numbers(int count) : count_(count) {}

  std::optional<int> next() { return next_ < count_ ? std::optional<int>(next_++) : std::nullopt; }
  void begin_epoch(std::uint64_t epoch) {
    epochs.push_back(epoch);
    next_ = 0;
  }
  void closed(int& batch) { closed_batches.push_back(batch); }

  std::vector<std::uint64_t> epochs;
  std::vector<int> closed_batches;

 private:
  int count_;
  int next_ = 0;
};

struct OnePass {
  using batch_type = int;
  std::optional<int> next() { return left-- > 0 ? std::optional<int>(left) : std::nullopt; }
  int left = 3;
};

}  // namespace

TEST_CASE("loop: the bare guard charges what its thread makes, and closing finds it gone") {
  Runtime rt(quiet());
  Loop loop(rt, {.name = "train"});
  for (int i = 0; i < 10; ++i) {
    Iteration it(loop);
    const Tensor x = zeros(it, {4, 4});
    const Tensor y = full({4, 4}, 2);
    CHECK(x.storage().owner_kind() == OwnerKind::iteration);
    CHECK(y.storage().owner_record() == x.storage().owner_record());
    CHECK(it.index() == static_cast<std::uint64_t>(i));
  }
  loop.finish();
  CHECK(loop.stats().iterations == 10);
  CHECK(loop.stats().stragglers == 0);
  CHECK(rt.memory().blocks_live == 0);
}

TEST_CASE("loop: over runs the epochs of a source and tells it which batches are used up") {
  Runtime rt(quiet());
  Loop loop(rt);
  Numbers numbers(3);
  std::vector<std::pair<std::uint64_t, int>> seen;
  for (auto& it : loop.over(numbers, {.epochs = 2})) {
    seen.emplace_back(it.epoch(), it.batch());
    CHECK(numbers.closed_batches.size() == seen.size() - 1);
  }
  CHECK(seen.size() == 6);
  CHECK(seen[3] == std::pair<std::uint64_t, int>{1, 0});
  CHECK(numbers.epochs == std::vector<std::uint64_t>{0, 1});
  CHECK(numbers.closed_batches == std::vector<int>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("loop: break closes the step and counts its batch as used") {
  Runtime rt(quiet());
  Loop loop(rt);
  Numbers numbers(5);
  for (auto& it : loop.over(numbers)) {
    const Tensor x = zeros(it, {8});
    if (it.batch() == 2) {
      break;
    }
  }
  CHECK(numbers.closed_batches == std::vector<int>{0, 1, 2});
  CHECK(loop.stats().iterations == 3);
  CHECK_FALSE(Owner::current_or_none());
}

TEST_CASE("loop: an exception closes the step and leaves its batch unused") {
  Runtime rt(quiet());
  Loop loop(rt);
  Numbers numbers(5);
  const auto run = [&] {
    for (auto& it : loop.over(numbers)) {
      if (it.batch() == 1) {
        throw std::runtime_error("user");
      }
    }
  };
  CHECK_THROWS_WITH_AS(run(), "user", std::runtime_error);
  CHECK(numbers.closed_batches == std::vector<int>{0});
  CHECK_FALSE(Owner::current_or_none());
}

TEST_CASE("loop: stop ends after the current step") {
  Runtime rt(quiet());
  Loop loop(rt);
  Numbers numbers(5);
  int steps = 0;
  for (auto& it : loop.over(numbers)) {
    ++steps;
    if (it.batch() == 1) {
      loop.stop();
    }
  }
  CHECK(steps == 2);
  CHECK(numbers.closed_batches == std::vector<int>{0, 1});
}

TEST_CASE("loop: a source without begin_epoch gives one epoch, and more are refused") {
  Runtime rt(quiet());
  Loop loop(rt);
  OnePass source;
  int steps = 0;
  for (auto& it : loop.over(source)) {
    steps += it.batch() >= 0 ? 1 : 0;
  }
  CHECK(steps == 3);
  CHECK_THROWS_WITH_AS((void)loop.over(source, {.epochs = 2}), doctest::Contains("begin_epoch"),
                       std::invalid_argument);
}

TEST_CASE("loop: keep moves a tensor into the parent, keep_copy only the view's elements") {
  Runtime rt(quiet());
  Loop loop(rt, {.policy = Policy::fail, .warmup = 0});
  Tensor best;
  Tensor part;
  {
    Iteration it(loop);
    const Tensor loss = full(it, {1000}, 3);
    part = it.keep_copy(loss.narrow(0, 10, 2));
    best = it.keep(loss);
    CHECK(it.close().clean());
  }
  CHECK(best.storage().owner_kind() == OwnerKind::runtime);
  CHECK(part.storage().bytes() == Bytes::of<float>(2));
  CHECK(part.data<const float>()[1] == 3.0f);
  loop.finish();
}

TEST_CASE("loop: LongLived makes what a step makes outlive it") {
  Runtime rt(quiet());
  Loop loop(rt, {.policy = Policy::fail, .warmup = 0});
  Tensor momentum;
  for (int i = 0; i < 3; ++i) {
    Iteration it(loop);
    if (!momentum.defined()) {
      const LongLived own(rt);
      momentum = zeros({16});
    }
    const Tensor gradient = zeros({16});
    CHECK(gradient.storage().owner_kind() == OwnerKind::iteration);
  }
  loop.finish();
  CHECK(momentum.storage().owner_kind() == OwnerKind::runtime);
}

TEST_CASE("loop: a straggler's error from the destructor comes out of finish") {
  Runtime rt(quiet());
  Loop loop(rt, {.deadline = milliseconds(1), .policy = Policy::fail, .warmup = 0});
  Tensor leaked;
  {
    Iteration it(loop);
    leaked = zeros({4});
  }
  CHECK_THROWS_WITH_AS(loop.finish(), doctest::Contains("loop_test.cpp"), StragglerError);
  CHECK_NOTHROW(loop.finish());
}

TEST_CASE("loop: spawned work is waited for, and its first error comes out of close") {
  Runtime rt(quiet());
  Loop loop(rt, {.deadline = milliseconds(20000)});
  std::atomic<int> done{0};
  {
    Iteration it(loop);
    for (int i = 0; i < 20; ++i) {
      it.spawn([&] {
        const Tensor x = zeros({64});
        CHECK(x.storage().owner_kind() == OwnerKind::iteration);
        ++done;
      });
    }
    CHECK(it.close().clean());
    CHECK(done == 20);
  }
  Iteration it(loop);
  it.spawn([] { throw std::runtime_error("task"); });
  CHECK_THROWS_WITH_AS(it.close(), "task", std::runtime_error);
}

TEST_CASE("loop: with one thread, close itself runs what was spawned") {
  RuntimeOptions options = quiet();
  options.threads = 1;
  Runtime rt(options);
  Loop loop(rt);
  int done = 0;
  Iteration it(loop);
  it.spawn([&] { ++done; });
  CHECK(it.close().clean());
  CHECK(done == 1);
}

TEST_CASE("loop: logged values keep nothing alive and give last and mean") {
  Runtime rt(quiet());
  Loop loop(rt);
  for (int i = 1; i <= 3; ++i) {
    Iteration it(loop);
    it.log("loss", full(it, {}, i));
    it.log("lr", 0.5);
  }
  const std::vector<LoggedValue> values = loop.logged();
  CHECK(values.size() == 2);
  CHECK(values[0].name == "loss");
  CHECK(values[0].last == doctest::Approx(3));
  CHECK(values[0].mean == doctest::Approx(2));
  loop.reset_logged();
  CHECK(loop.logged()[0].count == 0);
}

TEST_CASE("loop: every counts iterations from one, and refuses 0") {
  Runtime rt(quiet());
  Loop loop(rt);
  std::vector<std::uint64_t> hits;
  for (int i = 0; i < 6; ++i) {
    Iteration it(loop);
    if (it.every(3)) {
      hits.push_back(it.index());
    }
    CHECK_THROWS_AS((void)it.every(0), std::invalid_argument);
  }
  CHECK(hits == std::vector<std::uint64_t>{2, 5});
}

TEST_CASE("loop: a bound thread's tensors belong to the iteration") {
  Runtime rt(quiet());
  Loop loop(rt);
  Iteration it(loop);
  const OwnerRecord* record = nullptr;
  std::jthread(bind([&] {
    const Tensor x = zeros({4});
    record = x.storage().owner_record();
  })).join();
  CHECK(record == it.owner().record());
  CHECK(it.close().clean());
}

TEST_CASE("runtime: two in one process do not see each other") {
  Runtime a(quiet());
  Runtime b(quiet());
  Loop loop_a(a);
  Loop loop_b(b);
  Iteration outer(loop_a);
  const Tensor x = zeros(outer, {4});
  {
    Iteration inner(loop_b);
    const Tensor y = zeros(b, {4});
    CHECK(y.storage().owner_record() == inner.owner().record());
    const Tensor z = zeros(a, {4});  // the thread is inside b's iteration: a's own
    CHECK(z.storage().owner_record() == a.domain()->long_lived().record());
  }
  // y was freed while its heap was parked; trim takes such frees back.
  b.trim();
  CHECK(b.memory().blocks_live == 0);
  CHECK(Owner::current("test") == outer.owner());
}

TEST_CASE("runtime: options that cannot be are refused by name") {
  CHECK_THROWS_WITH_AS(Runtime({.threads = 5000}), doctest::Contains("threads"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Runtime({.devices = {{DeviceKind::cuda, 99}}}), doctest::Contains("cuda:99"),
                       std::invalid_argument);
}

TEST_CASE("runtime: a factory without an owner on a bare thread says the remedy") {
  CHECK_THROWS_WITH_AS(zeros({4}), doctest::Contains("[zeros] this thread has no owner"),
                       std::invalid_argument);
}

TEST_CASE("runtime: a tensor may outlive its runtime, and is named in its last log line") {
  Tensor survivor;
  std::string said;
  {
    RuntimeOptions options = quiet();
    options.log = [&](LogLevel, std::string_view text) { said = text; };
    Runtime rt(options);
    survivor = full(rt, {4}, 7);
  }
  CHECK(said.find("ends while 1 storage (") != std::string::npos);
  CHECK(said.find("loop_test.cpp") != std::string::npos);
  CHECK(survivor.data<const float>()[3] == 7.0f);
}

TEST_CASE("runtime: EBB_BYPASS=1 takes every block from the system") {
  setenv("EBB_BYPASS", "1", 1);
  Runtime rt(quiet());
  unsetenv("EBB_BYPASS");
  CHECK(rt.options().bypass);
  const Tensor x = full(rt, {1000}, 1);
  CHECK(x.data<const float>()[999] == 1.0f);
}
