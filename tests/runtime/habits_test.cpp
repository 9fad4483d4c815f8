// SPDX-License-Identifier: Apache-2.0
// What training loops do with tensors that outlive an iteration, rightly or by mistake: no normal
// loop waits, and no mistake goes unseen. [gc.close] [gc.policy]
#include "support/executor_choice.h"

#include <ebb/gc/manual_clock.h>
#include <ebb/runtime/loop.h>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using namespace ebb;
using namespace ebb::literals;

namespace {

// A runtime whose clock stands still, save where a close waits: then the deadline comes at once.
class ImpatientClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return now_; }
  void wait_until(std::condition_variable& /*changed*/, std::unique_lock<std::mutex>& /*lock*/,
                  TimePoint until) override {
    ++waits;
    now_ = until;
  }
  int waits = 0;

 private:
  TimePoint now_{std::chrono::hours(1)};
};

struct Rig {
  ImpatientClock clock;
  std::vector<std::string> log;
  Runtime rt{{.executor = ebb::test::executor_choice(),
              .clock = &clock,
              .log = [this](LogLevel, std::string_view text) { log.emplace_back(text); }}};
};

std::string line_of(Place at) {
  return "habits_test.cpp:" + std::to_string(at.line);
}

}  // namespace

TEST_CASE("habits: gradients set to none and made anew cost one wait in all") {
  Rig rig;
  Loop loop(rig.rt);
  std::vector<Tensor> gradients(4);
  for (int step = 0; step < 100; ++step) {
    Iteration it(loop);
    for (Tensor& gradient : gradients) {
      gradient = {};
    }
    for (Tensor& gradient : gradients) {
      gradient = zeros({16, 16});
    }
  }
  CHECK(rig.clock.waits == 1);
  CHECK(rig.rt.stats().adopted_live == 4);
  CHECK(rig.log.size() == 2);  // the first after warmup, and the one that says it goes on
}

TEST_CASE("habits: momentum made in the first step lasts, unseen") {
  Rig rig;
  Loop loop(rig.rt, {.policy = Policy::fail});
  Tensor momentum;
  for (int step = 0; step < 100; ++step) {
    Iteration it(loop);
    if (!momentum.defined()) {
      momentum = zeros({1000});
    }
    momentum.fill_(step);
  }
  loop.finish();
  CHECK(rig.log.empty());
  CHECK(momentum.data<float>()[0] == 99);
  Tensor own;
  {
    Iteration it(loop);
    const LongLived long_lived(rig.rt);
    own = zeros({1000});
  }
  CHECK(rig.clock.waits == 1);
  loop.finish();
}

TEST_CASE("habits: total += loss costs one wait in all, and memory stays flat") {
  Rig rig;
  Loop loop(rig.rt);
  Tensor total = zeros(rig.rt, {1});
  for (int step = 0; step < 4000; ++step) {
    Iteration it(loop);
    const Tensor loss = full({1}, 0.5);
    Tensor sum = empty({1});
    *sum.data<float>() = *total.data<const float>() + *loss.data<const float>();
    total = sum;
  }
  CHECK(rig.clock.waits == 1);
  CHECK(rig.rt.stats().adopted_live == 1);
  CHECK(rig.rt.memory().reserved < 1_MiB);
  CHECK(total.item<double>() == 2000);
}

TEST_CASE("habits: losses kept as tensors are named right after warmup, and their bytes bounded") {
  Rig rig;
  Loop loop(rig.rt, {.name = "train", .warmup = 3, .straggler_bytes = 1_MiB});
  std::vector<Tensor> losses;
  Place made;
  std::uint64_t steps = 0;
  const auto train = [&] {
    for (; steps < 4000; ++steps) {
      Iteration it(loop);
      made = Place::here();
      losses.push_back(full({1024}, 0.5));
      if (steps == 4) {
        REQUIRE(rig.log.size() == 1);  // of the iteration that closed before this one opened
        CHECK(rig.log[0].find("loop \"train\", iteration 3: ") == 0);
        made.line += 1;
        CHECK(rig.log[0].find(line_of(made)) != std::string::npos);
      }
    }
  };
  CHECK_THROWS_WITH_AS(train(), doctest::Contains("more than straggler_bytes (1 MiB)"),
                       StragglerError);
  CHECK(steps == 257);  // of 4 KiB each
  losses.clear();
  CHECK(rig.rt.stats().adopted_live == 0);
  Iteration it(loop);  // the loop goes on
  CHECK(it.close().clean());
}

TEST_CASE("habits: an evaluation buffer that is kept per batch is named by its line") {
  Rig rig;
  Loop train(rig.rt, {.name = "train"});
  Loop evaluate(rig.rt, {.name = "evaluate", .warmup = 0});
  std::vector<Tensor> means;
  Place made;
  for (int step = 0; step < 2; ++step) {
    Iteration outer(train);
    for (int batch = 0; batch < 3; ++batch) {
      Iteration it(evaluate);
      const Tensor logits = zeros({64, 10});
      made = Place::here();
      means.push_back(full({1}, 0.1));
    }
  }
  REQUIRE_FALSE(rig.log.empty());
  made.line += 1;
  CHECK(rig.log[0].find("loop \"evaluate\", iteration 0: ") == 0);
  CHECK(rig.log[0].find(line_of(made)) != std::string::npos);
  for (const std::string& line : rig.log) {
    CHECK(line.find("\"train\"") ==
          std::string::npos);  // adopted by the runtime, not the outer one
  }
}

TEST_CASE("habits: with revoke a cycle costs no memory, and its tensors say why they are gone") {
  struct Node {
    Tensor value;
    std::shared_ptr<Node> next;
  };
  Rig rig;
  Loop loop(rig.rt, {.policy = Policy::revoke});
  std::vector<std::weak_ptr<Node>> nodes;
  for (int step = 0; step < 100; ++step) {
    Iteration it(loop);
    auto node = std::make_shared<Node>(Node{zeros({256, 1024}), nullptr});
    node->next = node;
    nodes.push_back(node);
  }
  CHECK(rig.rt.memory().reserved < 4_MiB);
  const std::shared_ptr<Node> node = nodes[0].lock();
  CHECK_THROWS_WITH_AS(node->value.data<float>(), doctest::Contains("policy revoke"), RevokedError);
  CHECK_THROWS_AS(static_cast<void>(node->value.clone(rig.rt)), RevokedError);
  CHECK_THROWS_AS(static_cast<void>(node->value.narrow(0, 0, 1).item<float>()), std::exception);
  CHECK_THROWS_AS(static_cast<void>(keep(node->value, rig.rt)), RevokedError);
  CHECK(to_string(node->value).find("was given up") != std::string::npos);
  for (const std::weak_ptr<Node>& weak : nodes) {
    weak.lock()->next.reset();
  }
}

TEST_CASE("habits: with revoke what DLPack has exported keeps its memory") {
  Rig rig;
  Loop loop(rig.rt, {.policy = Policy::revoke});
  Tensor exported;
  const StorageHolder* holder = nullptr;
  std::unique_ptr<StorageHolder> held;
  {
    Iteration it(loop);
    exported = full({1000}, 2);
    held = std::make_unique<StorageHolder>(exported.storage(), "a DLPack consumer", "test");
    holder = held.get();
  }
  CHECK(holder->storage().is_same(exported.storage()));
  CHECK(exported.data<float>()[999] == 2);
}

TEST_CASE("habits: keep in all its forms leaves nothing to wait for") {
  Rig rig;
  Loop outer_loop(rig.rt, {.policy = Policy::fail, .warmup = 0});
  Loop inner_loop(rig.rt, {.policy = Policy::fail, .warmup = 0});
  Tensor by_iteration;
  Tensor by_function;
  Tensor by_runtime;
  Tensor copied;
  {
    Iteration outer(outer_loop);
    {
      Iteration inner(inner_loop);
      const Tensor made = full({8}, 3);
      by_iteration = inner.keep(full({8}, 1));
      by_function = keep(full({8}, 2));
      by_runtime = keep(made.narrow(0, 0, 4), rig.rt);
      copied = inner.keep_copy(full({8}, 4).narrow(0, 0, 2));
      inner.close();
    }
    CHECK(by_iteration.storage().owner_record() == outer.owner().record());
    CHECK(copied.storage().owner_record() == outer.owner().record());
    CHECK(copied.elements() == 2);
    by_iteration = outer.keep(by_iteration);
    copied = outer.keep(copied);
    outer.close();
  }
  CHECK(rig.clock.waits == 0);
  CHECK(by_iteration.storage().owner_kind() == OwnerKind::runtime);
  CHECK(by_function.storage().owner_kind() == OwnerKind::runtime);
  CHECK(by_runtime.storage().owner_kind() == OwnerKind::runtime);
  CHECK(rig.rt.stats().adopted_live == 0);
}

TEST_CASE("habits: finish() throws what a destructor could not; an unclaimed error is logged") {
  Rig rig;
  Tensor kept;
  {
    Loop loop(rig.rt, {.policy = Policy::fail, .warmup = 0});
    {
      Iteration it(loop);
      kept = zeros({4});
    }
    CHECK_THROWS_AS(loop.finish(), StragglerError);
    loop.finish();
    {
      Iteration it(loop);
      kept = zeros({4});
    }
  }
  REQUIRE(rig.log.size() == 1);
  CHECK(rig.log[0].find("nobody asked for") != std::string::npos);
  CHECK_THROWS_WITH_AS(Loop(rig.rt, {.in_flight = 0}), "[Loop] in_flight: must be at least 1",
                       std::invalid_argument);
}

TEST_CASE("habits: a loop that ends while its tensors live leaves them to the runtime") {
  Rig rig;
  std::vector<Tensor> kept;
  {
    Loop loop(rig.rt, {.warmup = 0});
    for (int i = 0; i < 3; ++i) {
      Iteration it(loop);
      kept.push_back(full({4}, i));
    }
  }
  CHECK(kept[2].data<float>()[3] == 2);
  CHECK(rig.rt.stats().adopted_live == 3);
  kept.clear();
  CHECK(rig.rt.stats().adopted_live == 0);
}
