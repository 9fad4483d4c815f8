// SPDX-License-Identifier: Apache-2.0
// What supervision costs: a guard opened and closed, alone and beside a busy loop; the charge of a
// storage; a million iterations; and training steps with and without guards. DESIGN section 10,
// rows 5 and 15. No rival does the same; the floor of a guard is what none could go below.
#include "busy_loop.h"
#include "harness.h"
#include "mlp_steps.h"
#include "owned_bytes.h"
#include "process_memory.h"
#include "support/process_status.h"

#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace {

using ebb::bench::Effort;
using ebb::bench::Figures;
using ebb::bench::keep_alive;
using ebb::bench::nanoseconds_per_call;

constexpr int calls = 200'000;

double guard_ns(ebb::Loop& loop, const Effort& effort) {
  return nanoseconds_per_call(effort.calls(calls), [&](int) { ebb::Iteration it(loop); });
}

// The same block with all that a storage adds to it, and bare.
void measure_charge(const Effort& effort, Figures& figures) {
  constexpr std::size_t bytes = 1024;
  ebb::bench::Storages storages;
  ebb::bench::HeapBlocks blocks;
  figures["storage_ns"] = nanoseconds_per_call(
      effort.calls(calls), [&](int) { keep_alive(storages.make(bytes).data()); });
  figures["block_ns"] = nanoseconds_per_call(effort.calls(calls), [&](int) {
    const ebb::Block block = blocks.heap().try_allocate(ebb::Bytes{bytes});
    keep_alive(block.data);
    blocks.heap().deallocate(block);
  });
  figures["tag_ns"] = figures["storage_ns"] - figures["block_ns"];
}

// A guard whose iteration leaves a tensor behind that the next one drops, as gradients are; beside
// live long-lived storages.
double straggling_guard_ns(ebb::Runtime& rt, int live, const Effort& effort) {
  std::vector<ebb::Tensor> replay_buffer;
  for (int i = 0; i < live; ++i) {
    replay_buffer.push_back(ebb::empty(rt, {16}));
  }
  ebb::Loop loop(rt);
  ebb::Tensor gradient;
  return nanoseconds_per_call(effort.calls(calls / 4), [&](int) {
    ebb::Iteration it(loop);
    gradient = ebb::empty({16});
  });
}

Figures measure_guard(const Effort& effort) {
  Figures figures;
  ebb::Runtime rt({.log = [](ebb::LogLevel, std::string_view) {}});  // its stragglers are meant
  ebb::Loop loop(rt);
  figures["guard_ns"] = guard_ns(loop, effort);
  measure_charge(effort, figures);
  for (const int live : {0, 1'000, 100'000}) {
    figures["straggling_guard_ns/" + std::to_string(live)] = straggling_guard_ns(rt, live, effort);
  }
  const ebb::bench::BusyLoop other(rt);
  figures["close_other_loop_busy_ns"] = guard_ns(loop, effort);
  figures["close_other_loop_busy_more_ns"] =
      figures["close_other_loop_busy_ns"] - figures["guard_ns"];
  return figures;
}

// What any guard must do that a foreign thread may look at: keep the thread's slot, put its owner
// there and restore it; take a record that is ready, and give it back.
Figures measure_floor(const Effort& effort) {
  static thread_local std::array<void*, 8> slot{};
  static std::atomic<void*> spare{&slot};
  return {{"guard_ns", nanoseconds_per_call(effort.calls(calls), [](int) {
             void* const record = spare.exchange(nullptr, std::memory_order_acquire);
             const auto saved = slot;
             slot[0] = record;
             keep_alive(slot);
             slot = saved;
             spare.exchange(record, std::memory_order_release);
           })}};
}

void small_iteration(ebb::Loop& loop, int i) {
  ebb::Iteration it(loop);
  const ebb::Tensor a = ebb::zeros({16, 16});
  const ebb::Tensor b = ebb::full({3 + i % 5, 7}, 1.0);
  const ebb::Tensor c = a.narrow(0, 0, 4).clone();
  keep_alive(c.data<float>());
  if (i % 1000 == 0) {
    it.spawn([] {});  // so that there are threads to count
  }
}

Figures measure_iterations(const Effort& effort) {
  const int warmup = effort.calls(10'000);
  const int count = effort.calls(1'000'000);
  constexpr int samples = 10;
  ebb::Runtime rt;
  ebb::Loop loop(rt);
  for (int i = 0; i < warmup; ++i) {
    small_iteration(loop, i);
  }
  Figures figures;
  figures["iterations_1m/threads_before"] = static_cast<double>(ebb::test::self_status("Threads:"));
  const auto before = static_cast<double>(ebb::bench::resident_bytes());
  double most = before;
  std::vector<double> times;
  for (int sample = 0; sample < samples; ++sample) {
    times.push_back(
        nanoseconds_per_call(count / samples, [&](int i) { small_iteration(loop, i); }));
    most = std::max(most, static_cast<double>(ebb::bench::resident_bytes()));
  }
  loop.finish();
  figures["iterations_1m/iterations"] = count;
  figures["rss_drift_bytes"] = most - before;
  figures["iterations_1m/threads_after"] = static_cast<double>(ebb::test::self_status("Threads:"));
  figures["iterations_1m/ns"] = ebb::bench::median(times);
  return figures;
}

void add_entries(nlohmann::json& result) {
  ebb::bench::lift_figures(result, "ebb");
  result["method"] = {
      {"window", "times are cut into windows, of which the lower quartile counts"},
      {"tag_ns", "storage of 1 KiB made and dropped in an iteration, less the bare heap's block"},
      {"straggling_guard_ns", "a guard and a tensor that outlives it, by long-lived tensors alive"},
      {"rss_drift_bytes", "the most of ten samples, less what was resident after the warm-up"},
      {"mlp",
       "784-512-512-10, batch 64, SGD with momentum; guarded over unguarded, the median of "
       "rounds of twenty steps each"},
  };
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ebb::bench;
  return run({.name = "gc",
              .unit = "units by name",
              .sides = {{.name = "ebb", .measure = measure_guard, .part = "guard"},
                        {.name = "floor", .measure = measure_floor, .part = "guard"},
                        {.name = "ebb", .measure = measure_iterations, .part = "iterations"},
                        {.name = "ebb", .measure = measure_mlp_steps, .part = "mlp"}},
              .report = add_entries},
             argc, argv);
}
