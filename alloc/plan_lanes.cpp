// SPDX-License-Identifier: Apache-2.0
#include "plan_lanes.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace ebb::inline v0 {

namespace {

constexpr std::size_t max_lanes = 64;
constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

// Sorted, without repetition.
std::vector<std::uint32_t> names_of(std::span<const PlanInterval> intervals,
                                    std::span<const LaneEdge> edges) {
  std::vector<std::uint32_t> names;
  for (const PlanInterval& interval : intervals) {
    names.push_back(interval.lane);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  // Lanes without buffers matter only as links between those with some.
  if (names.size() > 1) {
    for (const LaneEdge& edge : edges) {
      names.push_back(edge.from);
      names.push_back(edge.to);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  if (names.size() > max_lanes) {
    throw std::invalid_argument("[plan] more than 64 lanes");
  }
  return names;
}

std::uint32_t number_of(const std::vector<std::uint32_t>& names, std::uint32_t lane) {
  return static_cast<std::uint32_t>(std::lower_bound(names.begin(), names.end(), lane) -
                                    names.begin());
}

}  // namespace

PlanLanes::PlanLanes(std::span<const PlanInterval> intervals, std::span<const LaneEdge> edges) {
  for (const LaneEdge& edge : edges) {
    if (edge.waited <= edge.recorded) {
      throw std::invalid_argument(
          "[plan] an edge between lanes waits no later than it is recorded");
    }
  }
  const std::vector<std::uint32_t> names = names_of(intervals, edges);
  lanes_ = names.size();
  if (!several()) {
    return;
  }
  // In this order each edge comes after those that a chain could reach it by, since every one waits
  // later than it is recorded.
  std::vector<LaneEdge> sorted(edges.begin(), edges.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const LaneEdge& a, const LaneEdge& b) { return a.recorded < b.recorded; });
  for (LaneEdge& edge : sorted) {
    edge.from = number_of(names, edge.from);
    edge.to = number_of(names, edge.to);
  }
  free_at_.assign(intervals.size() * lanes_, never);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    lower_.push_back(intervals[i].lower);
    lane_.push_back(number_of(names, intervals[i].lane));
    const std::span<std::uint64_t> free_at = std::span(free_at_).subspan(i * lanes_, lanes_);
    free_at[lane_.back()] = intervals[i].upper;
    for (const LaneEdge& edge : sorted) {
      if (free_at[edge.from] <= edge.recorded) {
        free_at[edge.to] = std::min(free_at[edge.to], edge.waited);
      }
    }
  }
}

}  // namespace ebb::inline v0
