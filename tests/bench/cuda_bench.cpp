// SPDX-License-Identifier: Apache-2.0
// What ebb costs on a device: calls of the driver in a steady iteration, blocks among many holes,
// what is reserved for recorded training, and on a GPU blocks beside cudaMallocAsync, steps as
// graphs, and copies beside computing. On a simulated device where there is no GPU: times of work
// there are the CPU's then, and only show that everything runs. [alloc.cuda] [alloc.graph]
//
// Two more options than the other benchmarks: --device cuda|sim, and --trace FILE for a trace
// besides those of EBB_TEST_DATA.
#include "bench_device.h"
#include "device_iterations.h"
#include "device_pairs.h"
#include "device_replay.h"
#include "device_steps.h"
#include "harness.h"
#include "malloc_async.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using ebb::bench::Benchmark;
using ebb::bench::Effort;

constexpr const char* trace_variable = "EBB_BENCH_TRACE";

// Takes this benchmark's own options out of the others. As environment, so that children, which
// measure the sides, have them too.
std::vector<char*> take_own_options(int argc, char** argv) {
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option != "--device" && option != "--trace") {
      rest.push_back(argv[i]);
      continue;
    }
    if (++i == argc) {
      throw std::invalid_argument("'" + std::string(option) + "' lacks its value");
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet
    ::setenv(option == "--device" ? "EBB_BENCH_DEVICE" : trace_variable, argv[i], 1);
  }
  return rest;
}

void add_trace(Benchmark& benchmark, const std::string& name, const std::string& path) {
  benchmark.sides.push_back(
      {.name = "ebb",
       .measure = [=](const Effort& effort) { return replay_on_device(name, path, effort); },
       .part = "reserved-" + name});
  benchmark.sides.push_back(
      {.name = "ebb",
       .measure =
           [=](const Effort& effort) { return measure_trace_iterations(name, path, effort); },
       .part = "iterations-" + name});
}

void add_traces(Benchmark& benchmark) {
  for (const std::string name : ebb::bench::trace_names) {
    const std::string path = ebb::bench::trace_path(name);
    if (path.empty()) {
      benchmark.left_out["trace-" + name] = ebb::bench::trace_remedy(name);
    } else {
      add_trace(benchmark, name, path);
    }
  }
  if (const char* const path = std::getenv(trace_variable)) {
    add_trace(benchmark, std::filesystem::path(path).stem().string(), path);
  }
}

void add_sides(Benchmark& benchmark) {
  using namespace ebb::bench;
  add_traces(benchmark);
  benchmark.sides.push_back(
      {.name = "ebb", .measure = measure_mlp_iterations, .part = "iterations-mlp_step"});
  benchmark.sides.push_back({.name = "ebb", .measure = measure_device_holes, .part = "holes"});
  benchmark.sides.push_back({.name = "ebb", .measure = measure_pairs, .part = "pairs"});
  benchmark.sides.push_back({.name = "cudaMallocAsync",
                             .measure = measure_malloc_async,
                             .missing = malloc_async_missing(),
                             .part = "pairs"});
  benchmark.sides.push_back({.name = "ebb", .measure = measure_graphs, .part = "graphs"});
  benchmark.sides.push_back({.name = "ebb", .measure = measure_overlap, .part = "overlap"});
}

void add_entries(nlohmann::json& result) {
  ebb::bench::lift_figures(result, "ebb");
  result["device"] = ebb::bench::describe_device();
  result["method"] = {
      {"backend_calls_per_iteration",
       "calls for memory and to make or destroy streams, events and graphs; on a GPU those that "
       "heaps make; second half of the iterations"},
      {"reserved_over_live",
       "committed over live peak in multiples of 256; planned: from when a plan is followed"},
      {"holes_ns",
       "1 KiB made and dropped among 65,536 holes; holes_filled_ns: above slabs' sizes"},
      {"pair_ns", "a storage of an iteration made and dropped; the rival never gives memory back"},
      {"step_us", "steps queued one after the other, until the device has done the last"},
      {"copy_overlap", "copies and products on one stream over the same on two"},
  };
}

}  // namespace

int main(int argc, char** argv) {
  Benchmark benchmark{.name = "cuda", .sides = {}, .report = add_entries};
  std::vector<char*> rest;
  try {
    rest = take_own_options(argc, argv);
    benchmark.unit = "units by name, " + ebb::bench::describe_device() + " device";
    add_sides(benchmark);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
  return ebb::bench::run(benchmark, static_cast<int>(rest.size()), rest.data());
}
