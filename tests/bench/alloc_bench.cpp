// SPDX-License-Identifier: Apache-2.0
// What memory costs: storages made and dropped here and elsewhere, handed from thread to thread, a
// heap full of holes, and recorded training replayed. Rivals: see rivals.h; where they own bytes,
// by std::shared_ptr. [alloc.heap] and DESIGN section 10, rows 4, 6 and 8.
#include "alloc_json.h"
#include "handoff.h"
#include "harness.h"
#include "holes.h"
#include "owned_bytes.h"
#include "planned.h"
#include "replay.h"
#include "rivals.h"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace {

using ebb::bench::Benchmark;
using ebb::bench::Effort;
using ebb::bench::Figures;
using ebb::bench::Measure;
using ebb::bench::owned_sizes;
using ebb::bench::size_name;

// Made and dropped by one thread; made here and dropped elsewhere, in turns.
template <class Maker>
Figures measure_storage(const Effort& effort) {
  Maker maker;
  Figures figures;
  for (const std::size_t bytes : owned_sizes) {
    figures["unplanned/" + size_name(bytes)] = ebb::bench::nanoseconds_per_call(
        effort.calls(200'000),
        [&](int) { ebb::bench::keep_alive(ebb::bench::address_of(maker.make(bytes))); });
    figures["foreign/" + size_name(bytes)] =
        ebb::bench::foreign_ns(maker, bytes, effort.calls(100'000));
  }
  return figures;
}

// The same storages as those of ebb's side, by a plan.
Figures measure_planned(const Effort& effort) {
  Figures figures;
  for (const std::size_t bytes : owned_sizes) {
    ebb::Runtime rt;
    figures["planned/" + size_name(bytes)] =
        ebb::bench::planned_ns(rt, ebb::Bytes{bytes}, effort.calls(200'000));
  }
  return figures;
}

template <class Maker>
void measure_handoff(const std::string& prefix, const Effort& effort, Figures& figures) {
  Maker maker;
  for (const std::size_t bytes : owned_sizes) {
    figures[prefix + size_name(bytes)] =
        ebb::bench::handoff_ns(maker, bytes, effort.calls(200'000));
  }
}

template <class Owned, class Bare>
Figures measure_handoffs(const Effort& effort) {
  Figures figures;
  measure_handoff<Owned>("handoff/", effort, figures);
  measure_handoff<Bare>("bare_handoff/", effort, figures);
  return figures;
}

void add_part(Benchmark& benchmark, const std::string& part, const Measure& ours,
              const Measure& theirs) {
  benchmark.sides.push_back({.name = "ebb", .measure = ours, .part = part});
  for (ebb::bench::Side& side : ebb::bench::rivals(part, theirs)) {
    benchmark.sides.push_back(std::move(side));
  }
}

Measure replaying(const std::string& trace, const std::string& path,
                  Figures (*replay)(const ebb::bench::Trace&, const Effort&)) {
  return [=](const Effort& effort) {
    Figures figures;
    const auto recorded = ebb::bench::read_trace(path, effort.quick ? 2 : UINT64_MAX);
    for (const auto& [name, value] : replay(*recorded, effort)) {
      figures["replay/" + trace + "/" + name] = value;
    }
    return figures;
  };
}

// Returns the traces that are here.
std::vector<std::string> add_replays(Benchmark& benchmark) {
  std::vector<std::string> found;
  for (const std::string trace : ebb::bench::trace_names) {
    const std::string path = ebb::bench::trace_path(trace);
    const std::string part = "replay-" + trace;
    if (path.empty()) {
      benchmark.left_out[part] = ebb::bench::trace_remedy(trace);
      continue;
    }
    const Measure theirs = replaying(trace, path, ebb::bench::replay_malloc);
    add_part(benchmark, part, replaying(trace, path, ebb::bench::replay_heap), theirs);
    benchmark.sides.push_back({.name = "ebb planned",
                               .measure = replaying(trace, path, ebb::bench::replay_planned),
                               .part = part});
    benchmark.sides.push_back(ebb::bench::default_glibc(part, theirs));
    found.push_back(trace);
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ebb::bench;
  Benchmark benchmark{.name = "alloc", .unit = "units by name", .sides = {}};
  add_part(benchmark, "storage", measure_storage<Storages>, measure_storage<SharedBytes>);
  add_part(benchmark, "handoff", measure_handoffs<Storages, HeapBlocks>,
           measure_handoffs<SharedBytes, MallocBlocks>);
  benchmark.sides.push_back({.name = "ebb", .measure = measure_planned, .part = "planned"});
  benchmark.sides.push_back({.name = "ebb", .measure = measure_holes, .part = "holes"});
  const std::vector<std::string> traces = add_replays(benchmark);
  benchmark.report = [&](nlohmann::json& result) {
    add_alloc_entries(result, traces);
    result["method"] = {
        {"owned", "rivals: std::shared_ptr to malloc'ed bytes, two allocations"},
        {"ring_handles", ring_handles},
        {"ring_batch", ring_batch},
        {"window", "each run is cut into windows, of which the lower quartile counts"},
    };
  };
  return run(benchmark, argc, argv);
}
