// SPDX-License-Identifier: Apache-2.0
// One network; blocks of guarded and of plain steps take turns.
#include "mlp_steps.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/random.h>

#include <chrono>
#include <cstdint>
#include <functional>

#include <mlp/mlp.h>

namespace ebb::bench {
namespace {

constexpr std::int64_t batch = 64;
constexpr int rounds = 60;
constexpr int block_steps = 20;  // of one kind in a row: some 15 to 50 ms

class Trainer {
 public:
  Trainer() {
    ebb::Random random(1, "mlp_steps");
    ebb::fill_uniform(images_.span<float>(), -1.0f, 1.0f, random);
    for (std::int64_t& label : labels_.span<std::int64_t>()) {
      label = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(options_.classes)));
    }
  }

  ebb::Runtime& runtime() { return rt_; }

  void step() { keep_alive(model_.step(images_, labels_).data<float>()); }

  // As a trainer that sets its gradients to none: the last step's go, and this one's take their
  // place, charged to whom the step is.
  void step_with_fresh_gradients() {
    const ebb::nn::Parameters parameters = model_.parameters();
    for (ebb::nn::Parameter* const parameter : parameters) {
      parameter->grad = {};
    }
    for (ebb::nn::Parameter* const parameter : parameters) {
      parameter->grad = math_->matrix(parameter->value.size(0), parameter->value.size(1));
    }
    step();
  }

 private:
  const MlpOptions options_{.sgd = {.rate = 0.01f, .momentum = 0.9f}};
  // Gradients that outlive their iteration are what is measured, and need no report.
  ebb::Runtime rt_{{.log = [](ebb::LogLevel, std::string_view) {}}};
  ebb::Tensor images_ = ebb::empty(rt_, {batch, 1, 28, 28});
  ebb::Tensor labels_ = ebb::empty(rt_, {batch}, ebb::DType::i64);
  std::unique_ptr<ebb::nn::DeviceMath> math_ = ebb::nn::make_math(rt_);
  Mlp model_{rt_, options_};
};

// Milliseconds per step.
double mean_ms(int steps, const std::function<void()>& step) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int i = 0; i < steps; ++i) {
    step();
  }
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / steps;
}

void measure(Trainer& trainer, const std::string& name, const std::function<void()>& step,
             const Effort& effort, Figures& figures) {
  ebb::Loop loop(trainer.runtime());
  const std::function<void()> guarded = [&] {
    ebb::Iteration it(loop);
    step();
  };
  const int steps = effort.quick ? 1 : block_steps;
  mean_ms(block_steps, step);
  mean_ms(block_steps, guarded);  // past warmup, and what straggles is known
  std::vector<double> plain_ms;
  std::vector<double> guarded_ms;
  std::vector<double> ratios;
  for (int round = 0; round < (effort.quick ? 2 : rounds); ++round) {
    if (round % 2 == 0) {
      plain_ms.push_back(mean_ms(steps, step));
      guarded_ms.push_back(mean_ms(steps, guarded));
    } else {
      guarded_ms.push_back(mean_ms(steps, guarded));
      plain_ms.push_back(mean_ms(steps, step));
    }
    ratios.push_back(guarded_ms.back() / plain_ms.back());
  }
  loop.finish();
  const ebb::LoopStats stats = loop.stats();
  figures[name + "_stragglers"] = static_cast<double>(stats.stragglers) /
                                  static_cast<double>(stats.iterations - loop.options().warmup);
  figures[name + "_ms/unguarded"] = median(plain_ms);
  figures[name + "_ms/guarded"] = median(guarded_ms);
  figures[name + "_over_unguarded"] = median(ratios);
}

}  // namespace

Figures measure_mlp_steps(const Effort& effort) {
  Trainer trainer;
  const ebb::LongLived own(trainer.runtime());  // whom plain steps are charged to
  Figures figures;
  measure(
      trainer, "mlp_step", [&] { trainer.step(); }, effort, figures);
  measure(
      trainer, "mlp_fresh_gradients", [&] { trainer.step_with_fresh_gradients(); }, effort,
      figures);
  return figures;
}

}  // namespace ebb::bench
