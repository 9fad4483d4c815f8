// SPDX-License-Identifier: Apache-2.0
#include <ebb/gc/report.h>
#include <ebb/runtime/batch_fit.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace ebb::inline v0 {

namespace {

using RunStep = std::function<void(Iteration& it, std::size_t batch)>;

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("[largest_batch] " + what);
}

// Iterations of a loop of their own. What straggles in them is no news.
class BatchProbe {
 public:
  BatchProbe(Runtime& rt, const RunStep& step, unsigned tries)
      : step_(step),
        tries_(tries),
        loop_(rt, {.name = "largest_batch", .warmup = std::numeric_limits<std::uint64_t>::max()}) {}

  // Returns what the iterations with a batch allocate. Each try has plans of its own, so that what
  // was made in earlier ones is no part of it.
  AllocationSequence record(std::size_t batch) {
    for (unsigned i = 0; i < tries_; ++i) {
      if (auto recorded = try_to_record(batch)) {
        return *std::move(recorded);
      }
    }
    refuse("the iterations with a batch of " + std::to_string(batch) +
           " do not repeat: in no one of " + std::to_string(tries_) +
           " tries did four running make the same allocations");
  }
  // Throws what the destructor of an iteration could not.
  void finish() { loop_.finish(); }

 private:
  std::optional<AllocationSequence> try_to_record(std::size_t batch) {
    const Place at{"largest_batch", ++places_};
    run_twice(batch, at);
    const std::vector<std::shared_ptr<PlanSet>> sets = detail::plan_sets(loop_);
    const std::shared_ptr<PlanSet>& plans = *std::find_if(
        sets.begin(), sets.end(), [&at](const auto& set) { return set->place().is_same_as(at); });
    if (plans->stats().iterations == 0) {
      refuse("the step makes nothing in its iteration, on this thread");
    }
    if (plans->plans().size() != 1) {
      return std::nullopt;
    }
    run_twice(batch, at);
    if (plans->stats().followed != 2 || plans->plans().size() != 1) {
      return std::nullopt;
    }
    return plans->sequences().front();
  }

  void run_twice(std::size_t batch, const Place& at) {
    for (int i = 0; i < 2; ++i) {
      Iteration it(loop_, at);
      step_(it, batch);
      it.close_briefly();
    }
    if (!loop_.wait_plan()) {
      throw std::runtime_error("[largest_batch] a batch of " + std::to_string(batch) +
                               " was not planned within a minute");
    }
  }

  const RunStep& step_;
  const unsigned tries_;
  Loop loop_;
  std::uint32_t places_ = 0;
};

void check(const Runtime& rt, const RunStep& step, const BatchProbeOptions& options) {
  if (step == nullptr) {
    refuse("the step is empty");
  }
  if (rt.options().bypass) {
    refuse("the runtime takes every block from the system (bypass): nothing is planned");
  }
  const Owner owner = rt.owner();
  if (owner.record() != rt.domain()->long_lived().record()) {
    refuse("an iteration is open on this thread");
  }
  if (owner.stream().device != cpu) {
    refuse("the budget is for host memory, and what this thread makes is on " +
           to_string(owner.stream().device) + ": call it outside of the StreamScope");
  }
  const std::vector<std::size_t>& batches = options.batches;
  const std::size_t first = batches.empty() ? 0 : batches.front();
  if (std::all_of(batches.begin(), batches.end(), [first](auto b) { return b == first; })) {
    refuse("two different batches are the least to be run");
  }
  if (std::find(batches.begin(), batches.end(), 0u) != batches.end()) {
    refuse("a batch of 0");
  }
}

}  // namespace

RuntimeBatchFit largest_batch(Runtime& rt, Bytes budget, const RunStep& step,
                              const BatchProbeOptions& options) {
  check(rt, step, options);
  std::vector<BatchSample> samples;
  BatchProbe probe(rt, step, options.tries);
  for (const std::size_t batch : options.batches) {
    const auto is_same = [batch](const BatchSample& sample) { return sample.batch == batch; };
    if (std::none_of(samples.begin(), samples.end(), is_same)) {
      samples.push_back({batch, probe.record(batch)});
    }
  }
  probe.finish();
  const Bytes long_lived = rt.memory().live;
  if (long_lived >= budget) {
    refuse("nothing fits: what is long-lived has " + to_string(long_lived) + ", the budget is " +
           to_string(budget));
  }
  RuntimeBatchFit fit;
  static_cast<BatchFit&>(fit) = largest_batch(samples, budget - long_lived, options.fit);
  fit.long_lived = long_lived;
  return fit;
}

}  // namespace ebb::inline v0
