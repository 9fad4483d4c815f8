// SPDX-License-Identifier: Apache-2.0
// What batch fits, told by a step that is run with small ones, and checked by running it with the
// answer. [alloc.replay]
#include "plan_rig.h"

#include <ebb/runtime/batch_fit.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::quiet;
using ebb::test::run;

namespace {

// A model with weights, an optimizer's state that its first step makes, and tensors that grow with
// the batch.
class Toy {
 public:
  explicit Toy(Runtime& rt) : rt_(rt), weights_(full(rt, {100'000}, 1)) {}

  void operator()(Iteration& it, std::size_t batch) {
    largest_ = std::max(largest_, batch);
    if (!momentum_) {
      const LongLived own(rt_);
      momentum_ = full(rt_, {100'000}, 0);
    }
    const auto b = static_cast<std::int64_t>(batch);
    Tensor x = full(it, {b, 1000}, 1);
    const Tensor hidden = full(it, {b, 700}, 2);
    x = Tensor();
    const Tensor gradient = full(it, {100'000}, 0);
    const Tensor of_hidden = full(it, {b, 700}, 3);
    last_ = it.keep(full(it, {b}, 4));
    CHECK(hidden.data<const float>()[0] == 2);
  }
  std::size_t largest() const { return largest_; }

 private:
  Runtime& rt_;
  Tensor weights_;
  std::optional<Tensor> momentum_;
  Tensor last_;
  std::size_t largest_ = 0;
};

std::string refusal(Runtime& rt, Bytes budget,
                    const std::function<void(Iteration&, std::size_t)>& step,
                    const BatchProbeOptions& options = {}) {
  try {
    (void)largest_batch(rt, budget, step, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

void run_toy(Runtime& rt, std::size_t batch) {
  Toy toy(rt);
  Loop loop(rt);
  for (int i = 0; i < 4; ++i) {
    run(loop, 2, [&](Iteration& it) { toy(it, batch); });
    REQUIRE(loop.wait_plan());
  }
}

}  // namespace

TEST_CASE("largest batch: it fits when it is run, and the next one needs more") {
  constexpr Bytes budget = 20_MiB;
  RuntimeBatchFit fit;
  {
    Runtime rt(quiet());
    Toy toy(rt);
    fit = largest_batch(rt, budget, std::ref(toy));
    CHECK(toy.largest() == 5);
    // Weights and momentum, and what the last step kept.
    CHECK(fit.long_lived == Bytes{2 * 400'000 + 64});
    CHECK(fit.long_lived == rt.memory().live);
  }
  CHECK(fit.batch > 1000);
  CHECK(fit.long_lived + fit.height + fit.outside <= budget);
  REQUIRE(fit.needed_by_next);
  CHECK(fit.long_lived + *fit.needed_by_next > budget);

  RuntimeOptions options = quiet();
  options.memory_limit = budget + 1_MiB;
  Runtime limited(options);
  run_toy(limited, fit.batch);

  // What the step holds at its peak is the least that a batch needs.
  Runtime free(quiet());
  run_toy(free, fit.batch + 8);
  CHECK(free.memory().live_peak > budget);
}

TEST_CASE("largest batch: options reach the search, and batches may be chosen") {
  Runtime rt(quiet());
  Toy toy(rt);
  const RuntimeBatchFit fit =
      largest_batch(rt, 20_MiB, std::ref(toy), {.batches = {7, 4}, .fit = {.multiple_of = 100}});
  CHECK(toy.largest() == 7);
  CHECK(fit.batch % 100 == 0);
  CHECK(largest_batch(rt, 20_MiB, std::ref(toy), {.fit = {.most = 9}}).batch == 9);
}

TEST_CASE("largest batch: what does not repeat is refused") {
  Runtime rt(quiet());
  std::int64_t calls = 0;
  const auto grows = [&](Iteration& it, std::size_t) { (void)full(it, {100 * ++calls}, 1); };
  CHECK(refusal(rt, 20_MiB, grows) ==
        "[largest_batch] the iterations with a batch of 2 do not repeat: in no one of 8 tries did "
        "four running make the same allocations");
  CHECK(calls == 16);
  const auto alternates = [&](Iteration& it, std::size_t) {
    (void)full(it, {100 * (++calls % 2 + 1)}, 1);
  };
  CHECK(refusal(rt, 20_MiB, alternates, {.tries = 3}).find("in no one of 3 tries") !=
        std::string::npos);
  const auto by_threes = [&](Iteration& it, std::size_t) {
    (void)full(it, {100 * (++calls % 3 == 0 ? 2 : 1)}, 1);
  };
  CHECK(refusal(rt, 20_MiB, by_threes).find("do not repeat") != std::string::npos);
}

TEST_CASE("largest batch: sizes that grow otherwise, and other allocations, are refused by name") {
  Runtime rt(quiet());
  const auto square = [](Iteration& it, std::size_t batch) {
    const auto b = static_cast<std::int64_t>(batch);
    (void)full(it, {b, b}, 1);
  };
  CHECK(refusal(rt, 20_MiB, square).find("batch_fit_test.cpp:") != std::string::npos);
  CHECK(refusal(rt, 20_MiB, square).find("does not grow by a fixed number of bytes") !=
        std::string::npos);
  const auto other = [](Iteration& it, std::size_t batch) {
    for (std::size_t i = 0; i < batch; ++i) {
      (void)full(it, {100}, 1);
    }
  };
  CHECK(refusal(rt, 20_MiB, other).find("do not make the same allocations") != std::string::npos);
}

TEST_CASE("largest batch: budgets that are too small are refused") {
  Runtime rt(quiet());
  Toy toy(rt);
  CHECK(refusal(rt, 800'064_B, std::ref(toy)) ==
        "[largest_batch] nothing fits: what is long-lived has 781 KiB, the budget is 781 KiB");
  CHECK(refusal(rt, 1'000'000_B, std::ref(toy)).find("nothing fits: a batch of 1 needs") !=
        std::string::npos);
}

TEST_CASE("largest batch: what cannot be probed is refused before anything is run") {
  Runtime rt(quiet());
  Toy toy(rt);
  CHECK(refusal(rt, 20_MiB, {}) == "[largest_batch] the step is empty");
  CHECK(refusal(rt, 20_MiB, std::ref(toy), {.batches = {}}) ==
        "[largest_batch] two different batches are the least to be run");
  CHECK(refusal(rt, 20_MiB, std::ref(toy), {.batches = {3, 3}}) ==
        "[largest_batch] two different batches are the least to be run");
  CHECK(refusal(rt, 20_MiB, std::ref(toy), {.batches = {3, 0}}) == "[largest_batch] a batch of 0");
  Loop loop(rt);
  run(loop, 1, [&](Iteration&) {
    CHECK(refusal(rt, 20_MiB, std::ref(toy)) ==
          "[largest_batch] an iteration is open on this thread");
  });
  RuntimeOptions options = quiet();
  options.bypass = true;
  Runtime bypassing(options);
  CHECK(refusal(bypassing, 20_MiB, std::ref(toy)).find("bypass") != std::string::npos);
  CHECK(toy.largest() == 0);
  CHECK(refusal(rt, 20_MiB, [](Iteration&, std::size_t) {}) ==
        "[largest_batch] the step makes nothing in its iteration, on this thread");
}

TEST_CASE("largest batch: what a step throws comes through, and leaves the runtime usable") {
  Runtime rt(quiet());
  Toy toy(rt);
  const auto throws = [](Iteration& it, std::size_t) {
    const Tensor alive = full(it, {100}, 1);
    throw std::runtime_error("out of data");
  };
  CHECK_THROWS_WITH_AS((void)largest_batch(rt, 20_MiB, throws), "out of data", std::runtime_error);
  CHECK(largest_batch(rt, 20_MiB, std::ref(toy)).batch > 1000);
}
