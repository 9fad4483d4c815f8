// SPDX-License-Identifier: Apache-2.0
// Loops and the iteration guard, over gc's open owners. [rt.loop]
#include "keep.h"
#include "logged_values.h"
#include "saved_plans.h"

#include <ebb/runtime/loop.h>

#include <stdexcept>

namespace ebb::inline v0 {
namespace {

// Plans on a thread of the loaders: they work ahead, and can wait.
class PlanTask final : public Task {
 public:
  PlanTask(std::shared_ptr<PlanSet> plans, std::shared_ptr<const std::atomic<bool>> ended) noexcept
      : plans_(std::move(plans)), ended_(std::move(ended)) {}

 private:
  void run() noexcept override {
    const std::unique_ptr<PlanTask> self(this);
    plans_->work([this] { return ended_->load(std::memory_order_relaxed); });
  }

  std::shared_ptr<PlanSet> plans_;
  std::shared_ptr<const std::atomic<bool>> ended_;  // relaxed: the plans are of no use then
};

bool plan_elsewhere(void* runtime, const std::shared_ptr<PlanSet>& plans) noexcept {
  auto& rt = *static_cast<Runtime*>(runtime);
  const OwnerScope no_job_of_the_iteration(rt.domain()->long_lived());
  try {
    auto task = std::make_unique<PlanTask>(plans, rt.ending());
    rt.load_executor(1).submit(*task);
    task.release();  // NOLINT(bugprone-unused-return-value): run() owns it now
    return true;
  } catch (...) {
    return false;
  }
}

// The options that gc needs; help runs a waiting task of the step executor while jobs are waited
// for, so that a runtime of one thread ends its own tasks.
CloseOptions close_options(Runtime& rt, const LoopOptions& options) {
  return {.name = options.name,
          .deadline = options.deadline,
          .policy = options.policy,
          .warmup = options.warmup,
          .straggler_bytes = options.straggler_bytes,
          .in_flight = options.in_flight,
          .device_deadline = rt.options().device_deadline,
          .traces = options.traces,
          .plans = options.plans,
          .plan_elsewhere = plan_elsewhere,
          .plan_context = &rt,
          .help =
              [](void* runtime) noexcept {
                try {
                  return static_cast<Runtime*>(runtime)->step_executor().run_one();
                } catch (...) {
                  return false;
                }
              },
          .help_context = &rt};
}

LoopOptions checked(LoopOptions options) {
  if (options.deadline < Milliseconds::zero()) {
    throw std::invalid_argument("[Loop] deadline: must not be negative");
  }
  if (options.in_flight == 0) {
    throw std::invalid_argument("[Loop] in_flight: must be at least 1");
  }
  return options;
}

}  // namespace

class Loop::Impl {
 public:
  Impl(Runtime& its_runtime, LoopOptions its_options)
      : rt(its_runtime),
        options(checked(std::move(its_options))),
        series(rt.domain(), close_options(rt, options)) {
    domain().require_usable("Loop");
  }

  Domain& domain() const noexcept { return series.domain(); }

  Runtime& rt;
  const LoopOptions options;
  CloseSeries series;
  // Relaxed: only numbers the iterations.
  std::atomic<std::uint64_t> next_index{0};
  detail::LoggedValues logged;
};

Loop::Loop(Runtime& rt, LoopOptions options)
    : impl_(std::make_unique<Impl>(rt, std::move(options))) {}

Loop::~Loop() = default;

void Loop::finish() {
  impl_->series.finish();
  impl_->logged.finish();
}

bool Loop::wait_plan(Milliseconds patience) {
  return impl_->series.wait_plan(patience);
}

std::vector<LoopPlans> Loop::plans() const {
  require_own_process("Loop::plans");
  std::vector<LoopPlans> all;
  const auto add = [&all](const std::vector<std::shared_ptr<PlanSet>>& sets, bool on_device) {
    for (const std::shared_ptr<PlanSet>& set : sets) {
      all.push_back({set->place(), set->stats(), set->plans(), on_device});
    }
  };
  add(impl_->series.plans(), false);
  add(impl_->series.device_plans(), true);
  return all;
}

void Loop::save_plans(const std::string& path) const {
  detail::write_plan_file(path, impl_->series.save_plans());
}

void Loop::load_plans(const std::string& path) {
  require_own_process("Loop::load_plans");
  const std::string text = detail::read_plan_file(path);
  try {
    impl_->series.load_plans(text);
  } catch (const std::invalid_argument& fault) {
    const std::string_view what = fault.what();
    throw std::invalid_argument("[Loop::load_plans] " + path + ": " +
                                std::string(what.substr(what.find("] ") + 2)));
  }
}

void Loop::on_collect(std::function<void()> hook) {
  impl_->series.on_collect(std::move(hook));
}

Runtime& Loop::runtime() const noexcept {
  return impl_->rt;
}

const LoopOptions& Loop::options() const noexcept {
  return impl_->options;
}

void Loop::require_own_process(const char* function) const {
  impl_.mark().require_own_process(function);
}

LoopStats Loop::stats() const noexcept {
  if (impl_->domain().in_child()) {
    return {};
  }
  const MemoryStats memory = impl_->domain().memory();  // not the runtime's, which may have ended
  return {.iterations = impl_->series.closed_total(),
          .stragglers = impl_->series.stragglers_total(),
          .live_peak = memory.live_peak,
          .reserved = memory.reserved};
}

std::vector<LoggedValue> Loop::logged() const {
  require_own_process("Loop::logged");
  return impl_->logged.values();
}

void Loop::reset_logged() noexcept {
  if (impl_->domain().in_child()) {
    return;
  }
  impl_->logged.reset();
}

Iteration::Iteration(Loop& loop, Place at)
    : loop_(loop),
      index_(loop.impl_->next_index.fetch_add(1, std::memory_order_relaxed)),
      open_(loop.impl_->series, index_, at) {}

bool Iteration::every(std::uint64_t n) const {
  if (n == 0) {
    throw std::invalid_argument("[Iteration::every] n must not be 0");
  }
  return (index_ + 1) % n == 0;
}

// Not by the other one: so many arguments would go by memory, and wait there for each other.
Storage Iteration::allocate(Bytes bytes, Place at) const {
  const Owner mine = owner();
  return Storage::make(mine, bytes, default_align(mine.stream().device), Birth{at});
}

Storage Iteration::allocate(Bytes bytes, Stream stream, Place at) const {
  return Storage::make(owner().on(stream), bytes, default_align(stream.device), Birth{at});
}

Tensor Iteration::keep(const Tensor& tensor, Place at) const {
  return detail::keep_in(tensor, open_.parent(), at);
}

Tensor Iteration::keep_copy(const Tensor& tensor, Place at) const {
  return tensor.clone(open_.parent(), at);
}

void Iteration::log(std::string_view name, double value) {
  loop_.require_own_process("Iteration::log");
  loop_.impl_->logged.add(name, value);
}

void Iteration::log(std::string_view name, const Tensor& value) {
  if (value.device() == cpu) {
    return log(name, value.item<double>());
  }
  loop_.require_own_process("Iteration::log");
  loop_.impl_->logged.add_later(name, value);
}

namespace detail {

void require_one_epoch(std::uint64_t epochs) {
  if (epochs > 1) {
    throw std::invalid_argument(
        "[Loop::over] epochs: the source has no begin_epoch(uint64_t), so one is all it can give");
  }
}

void store_error(Loop& loop, std::exception_ptr error) noexcept {
  loop.impl_->series.store(std::move(error));
}

std::vector<std::shared_ptr<PlanSet>> plan_sets(const Loop& loop) {
  return loop.impl_->series.plans();
}

}  // namespace detail
}  // namespace ebb::inline v0
