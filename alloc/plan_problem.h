// SPDX-License-Identifier: Apache-2.0
// What plan() solves: its intervals checked, in units of a common size, on a line of sections.
// Used by the greedy orders and the exact search. Values, not changed once made.
#pragma once

#include <ebb/alloc/plan.h>

#include <cstdint>
#include <span>
#include <vector>

namespace ebb::inline v0 {

// A buffer: its size in units, and the first and last section that it lives in.
struct PlanBuffer {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint64_t size = 0;
  std::uint64_t width = 0;  // how long it lives, in moments
};

// A section is a stretch of time that begins with a birth after a death: what lives in it is alive
// at one moment, and two buffers live together exactly when they share a section.
struct PlanProblem {
  std::vector<PlanBuffer> buffers;
  std::vector<std::uint64_t> moments;  // by section: one at which everything in it lives
  std::vector<std::uint64_t> live;     // by section: units alive
  std::uint64_t max_live = 0;          // units
  std::uint64_t unit = 1;              // bytes: every size is a multiple of it
};

// Throws std::invalid_argument as plan() does.
PlanProblem make_plan_problem(std::span<const PlanInterval> intervals, Align align);

}  // namespace ebb::inline v0
