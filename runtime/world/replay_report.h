// SPDX-License-Identifier: Apache-2.0
// What `ebb replay` tells of a trace that it has played. Values and functions, single-threaded.
#pragma once

#include "trace.h"
#include "trace_plans.h"
#include "trace_player.h"

#include <ebb/alloc/replay.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ebb::world {

struct ReplayReport {
  std::string mode;
  std::size_t iterations = 0;  // the deviating ones included
  std::size_t deviating = 0;
  std::uint64_t pairs = 0;  // of allocation and free
  // Most at a time, from when a plan is first followed; from the begin where none is.
  std::uint64_t live_peak = 0;
  std::uint64_t reserved = 0;
  std::optional<std::size_t> followed_from;  // the iteration that first began on a plan
  PlanSetStats stats;
  std::size_t plans = 0;
  // From the second iteration on that was followed to its end; from the third where there are none.
  std::size_t steady_from = 0;
  std::uint64_t faults = 0;
  std::optional<double> ns_per_pair;  // median of the steady iterations
  // Of the deviating iterations: most that was reserved, less what lived before, over the plan.
  std::optional<double> reserved_over_plan;
  std::optional<double> live_over_plan;  // of what lived, which nothing can do with less than
  std::vector<PackedIteration> packed;   // the iterations of the file
  std::vector<PlayedIteration> played;
  double seconds = 0;

  // The largest share by which an iteration's height is above its max_live.
  double worst_gap() const;
  // Reserved over live peak.
  double overhead() const;
};

// Takes the figures of space from one play of trace, those of time from another.
void summarise(const Trace& trace, const Played& space, const Played& time, ReplayReport& report);

void print_json(const ReplayReport& report);
void print_text(const ReplayReport& report);

}  // namespace ebb::world
