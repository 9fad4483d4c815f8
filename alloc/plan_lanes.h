// SPDX-License-Identifier: Apache-2.0
// When memory of one lane may be used on another. [alloc.plan] Used by the greedy orders.
// Not changed once made.
#pragma once

#include <ebb/alloc/plan.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ebb::inline v0 {

class PlanLanes {
 public:
  // Throws std::invalid_argument for an edge that does not wait later than it is recorded, and for
  // more than 64 lanes. Takes intervals times edges steps where there are several lanes.
  PlanLanes(std::span<const PlanInterval> intervals, std::span<const LaneEdge> edges);

  bool several() const noexcept { return lanes_ > 1; }
  // Whether both, by their places in the intervals, may never share an address.
  bool conflict(std::size_t a, std::size_t b) const noexcept {
    return lower_[b] < free_at(a, lane_[b]) && lower_[a] < free_at(b, lane_[a]);
  }

 private:
  // The first moment at which the buffer's memory may be used on the lane.
  std::uint64_t free_at(std::size_t buffer, std::uint32_t lane) const noexcept {
    return free_at_[buffer * lanes_ + lane];
  }

  std::size_t lanes_ = 0;
  std::vector<std::uint64_t> lower_;
  std::vector<std::uint32_t> lane_;  // numbered from 0
  std::vector<std::uint64_t> free_at_;
};

}  // namespace ebb::inline v0
