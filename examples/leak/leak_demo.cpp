// SPDX-License-Identifier: Apache-2.0
// The usual ways to keep memory by accident, each with what ebb says of it. Nothing dangles and
// nothing hangs: stragglers become the runtime's, and each loop goes on. The output is shown in
// docs/stragglers.md.
#include <ebb/ebb.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Not in an unnamed namespace and not inlined, so that backtraces have names.
namespace mistakes {

// Deadlines are short here, and the first iteration is taken for warm-up.
static ebb::LoopOptions options(const char* name, ebb::Policy policy = ebb::Policy::adopt) {
  return {.name = name, .deadline = ebb::Milliseconds{20}, .policy = policy, .warmup = 1};
}

// Losses are summed as tensors, to be read at the end of the epoch. Each sum is a tensor of its
// iteration that the next one still needs. Remedy: it.log("loss", loss), or item<float>().
[[gnu::noinline]] void losses_summed_as_tensors(ebb::Runtime& rt) {
  ebb::Loop loop(rt, options("train"));
  ebb::Tensor total = ebb::zeros(rt, {1});
  for (int step = 0; step < 4; ++step) {
    ebb::Iteration it(loop);
    const ebb::Tensor loss = ebb::full({1}, 0.5);
    ebb::Tensor sum = ebb::full({1}, total.item<double>() + loss.item<double>());
    total = sum.named("total");
  }
  loop.finish();
}

// A logger holds on to what it is given. Remedy: give it numbers.
[[gnu::noinline]] void logger_that_keeps_tensors(ebb::Runtime& rt) {
  struct Logger {
    std::vector<ebb::Tensor> history;
    void log(const ebb::Tensor& value) { history.push_back(value); }
  } logger;
  ebb::Loop loop(rt, options("train"));
  for (int step = 0; step < 4; ++step) {
    ebb::Iteration it(loop);
    const ebb::Phase phase("backward");
    const ebb::Tensor norms = ebb::full({8}, 1.0);
    logger.log(norms);
  }
  loop.finish();
}

// Two nodes of a graph refer to each other. No reference count gets to zero; under Policy::revoke
// the memory goes all the same. Remedy: a weak_ptr.
[[gnu::noinline]] void cycle(ebb::Runtime& rt) {
  struct Node {
    ebb::Tensor value;
    std::shared_ptr<Node> other;
  };
  std::vector<std::weak_ptr<Node>> nodes;  // so that the demo itself ends clean
  ebb::Loop loop(rt, options("graph", ebb::Policy::revoke));
  for (int step = 0; step < 4; ++step) {
    ebb::Iteration it(loop);
    auto a = std::make_shared<Node>();
    a->value = ebb::zeros({256, 1024});
    a->other = std::make_shared<Node>(Node{.value = {}, .other = a});
    nodes.push_back(a);
  }
  loop.finish();
  for (const std::weak_ptr<Node>& node : nodes) {
    node.lock()->other.reset();
  }
}

// A cache of decoded samples that the step fills when it meets a new one. Remedy: make its entries
// under ebb::LongLived, or keep() them. (What a Loader caches is its own and never listed.)
[[gnu::noinline]] void cache_filled_by_the_step(ebb::Runtime& rt) {
  std::map<int, ebb::Tensor> cache;
  const auto decoded = [&cache](int sample) -> const ebb::Tensor& {
    ebb::Tensor& entry = cache[sample];
    if (!entry.defined()) {
      entry = ebb::full({28, 28}, sample);
    }
    return entry;
  };
  ebb::Loop loop(rt, options("train"));
  for (int step = 0; step < 4; ++step) {
    ebb::Iteration it(loop);
    const ebb::Tensor x = decoded(step).clone();
  }
  loop.finish();
}

// The buffer of an evaluation in the middle of training is still there when training goes on.
// Remedy: a scope of its own.
[[gnu::noinline]] void forgotten_evaluation_buffer(ebb::Runtime& rt) {
  ebb::Loop train(rt, options("train"));
  ebb::Loop evaluate(rt, options("evaluate"));
  std::optional<ebb::Tensor> logits;
  for (int step = 0; step < 4; ++step) {
    ebb::Iteration it(train);
    if (step % 2 == 1) {
      ebb::Iteration eval(evaluate);
      logits = ebb::zeros({64, 10});
    }
  }
  train.finish();
}

// A function is bound to its iteration and handed to nobody. Remedy: run it, or drop it.
[[gnu::noinline]] void bound_task_left_behind(ebb::Runtime& rt) {
  ebb::Loop loop(rt, options("train"));
  std::vector<ebb::Bound<void (*)()>> tasks;
  for (int step = 0; step < 2; ++step) {
    ebb::Iteration it(loop);
    tasks.push_back(ebb::bind(+[] {}));
  }
  loop.finish();
}

}  // namespace mistakes

namespace {

struct Mistake {
  const char* title;
  void (*make)(ebb::Runtime& rt);
};

constexpr Mistake all[] = {
    {"Losses summed as tensors", mistakes::losses_summed_as_tensors},
    {"A logger that keeps tensors", mistakes::logger_that_keeps_tensors},
    {"A cycle, under Policy::revoke", mistakes::cycle},
    {"A loader's cache that the step fills", mistakes::cache_filled_by_the_step},
    {"A forgotten evaluation buffer", mistakes::forgotten_evaluation_buffer},
    {"A bound task left behind", mistakes::bound_task_left_behind},
};

}  // namespace

int main() {
  bool reported = true;
  for (const Mistake& mistake : all) {
    std::printf("%s\n", mistake.title);
    int reports = 0;
    ebb::Runtime rt({.log = [&reports](ebb::LogLevel level, std::string_view text) {
      std::printf("[%s] %.*s\n", level == ebb::LogLevel::error ? "error" : "warning",
                  static_cast<int>(text.size()), text.data());
      ++reports;
    }});
    mistake.make(rt);
    std::printf("\n");
    reported = reported && reports > 0 && rt.stats().storages_live == 0;
  }
  return reported ? 0 : 1;
}
