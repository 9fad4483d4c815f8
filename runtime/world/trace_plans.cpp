// SPDX-License-Identifier: Apache-2.0
#include "trace_plans.h"

#include <ebb/alloc/replay.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace ebb::world {

namespace {

using Intervals = std::vector<PlanInterval>;

// Time goes by allocations and frees.
Intervals intervals_of(const Trace& trace, std::size_t iteration) {
  Intervals intervals;
  std::unordered_map<std::uint32_t, std::size_t> born;  // by block: its interval
  const std::span<const TraceEvent> events = trace.iteration(iteration);
  for (std::size_t now = 0; now < events.size(); ++now) {
    const TraceEvent& event = events[now];
    if (event.is_free) {
      if (const auto found = born.find(event.block); found != born.end()) {
        intervals[found->second].upper = now;
      }
    } else if (event.thread == trace.loop_thread) {
      born.emplace(event.block, intervals.size());
      intervals.push_back({.id = intervals.size(),
                           .lower = now,
                           .upper = events.size(),
                           .size = Bytes{std::max<std::uint64_t>(trace.bytes[event.block], 1)}});
    }
  }
  return intervals;
}

// What is close to the bound mostly reaches it with some patience, and what is far from it mostly
// has a lower plan; in between there is little to gain.
bool is_worth_more(const Plan& packed) {
  constexpr double close = 0.005;
  constexpr double far = 0.02;
  return packed.cut_short && (packed.gap() < close || packed.gap() > far);
}

PackedIteration pack(const Intervals& intervals) {
  PlanOptions options;
  options.nodes = PlanSetOptions{}.nodes;
  Plan packed = plan(intervals, default_align_cpu, options);
  if (is_worth_more(packed)) {
    options.nodes *= 10;
    packed = plan(intervals, default_align_cpu, options);
  }
  if (const std::optional<std::string> fault = validate(intervals, default_align_cpu, packed)) {
    throw std::logic_error("[plan] the plan is wrong, which is a defect of ebb: " + *fault);
  }
  return {.max_live = packed.max_live, .height = packed.height};
}

}  // namespace

std::vector<PackedIteration> pack_iterations(const Trace& trace) {
  using Key = std::vector<std::array<std::uint64_t, 3>>;
  std::map<Key, PackedIteration> known;  // most iterations repeat another
  std::vector<PackedIteration> packed;
  for (std::size_t i = 0; i < trace.iterations(); ++i) {
    const Intervals intervals = intervals_of(trace, i);
    Key key;
    key.reserve(intervals.size());
    for (const PlanInterval& interval : intervals) {
      key.push_back({interval.lower, interval.upper, interval.size.count()});
    }
    auto found = known.find(key);
    if (found == known.end()) {
      found = known.emplace(std::move(key), pack(intervals)).first;
    }
    packed.push_back(found->second);
  }
  return packed;
}

}  // namespace ebb::world
