// SPDX-License-Identifier: Apache-2.0
// The judge of plans: written from what a plan must be, sharing nothing with how one is made, so
// that a mistake there is not repeated here. [alloc.plan] Used by tests, `ebb plan`, and whoever
// loads a plan.
#include <ebb/alloc/plan.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

namespace ebb::inline v0 {

namespace {

std::string name(const PlanInterval& interval) {
  return "interval " + std::to_string(interval.id);
}

// Whether what ended on `before` at its upper moment had reached `after` by the time that one
// began: a breadth-first walk over the edges from one lane and moment.
bool handed_over(const PlanInterval& before, const PlanInterval& after,
                 std::span<const LaneEdge> edges) {
  if (before.upper > after.lower) {
    return false;
  }
  std::map<std::uint32_t, std::uint64_t> since{{before.lane, before.upper}};
  for (bool changed = true; changed;) {
    changed = false;
    for (const LaneEdge& edge : edges) {
      const auto from = since.find(edge.from);
      if (from == since.end() || edge.recorded < from->second) {
        continue;
      }
      const auto [to, added] = since.try_emplace(edge.to, edge.waited);
      if (added || edge.waited < to->second) {
        to->second = edge.waited;
        changed = true;
      }
    }
  }
  const auto there = since.find(after.lane);
  return there != since.end() && there->second <= after.lower;
}

bool may_share(const PlanInterval& a, const PlanInterval& b, std::span<const LaneEdge> edges) {
  return handed_over(a, b, edges) || handed_over(b, a, edges);
}

struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
  std::size_t index;
};

// Each buffer against those that share addresses with it, by a sweep over the addresses.
std::optional<std::string> find_overlap(std::span<const PlanInterval> intervals,
                                        std::vector<Extent> extents,
                                        std::span<const LaneEdge> edges) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  std::vector<Extent> current;
  for (const Extent& extent : extents) {
    std::erase_if(current, [&](const Extent& other) { return other.end <= extent.begin; });
    const PlanInterval& mine = intervals[extent.index];
    for (const Extent& other : current) {
      const PlanInterval& theirs = intervals[other.index];
      if (mine.lower < theirs.upper && theirs.lower < mine.upper) {
        return name(mine) + " and " + name(theirs) + " overlap in time and space";
      }
      if (mine.lane != theirs.lane && !may_share(mine, theirs, edges)) {
        return name(mine) + " and " + name(theirs) +
               " share addresses, and no edge leads from one's lane to the other's in time";
      }
    }
    current.push_back(extent);
  }
  return std::nullopt;
}

std::uint64_t most_alive(std::span<const PlanInterval> intervals,
                         const std::vector<Extent>& extents) {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> changes;  // ended, begun
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    changes[intervals[i].lower].second += extents[i].end - extents[i].begin;
    changes[intervals[i].upper].first += extents[i].end - extents[i].begin;
  }
  std::uint64_t alive = 0;
  std::uint64_t most = 0;
  for (const auto& [moment, change] : changes) {
    alive = alive - change.first + change.second;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

std::optional<std::string> validate(std::span<const PlanInterval> intervals, Align align,
                                    const Plan& plan, std::span<const LaneEdge> edges) {
  if (plan.offsets.size() != intervals.size()) {
    return std::to_string(plan.offsets.size()) + " offsets for " +
           std::to_string(intervals.size()) + " intervals";
  }
  std::vector<Extent> extents;
  std::uint64_t top = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const std::uint64_t begin = plan.offsets[i].count();
    if (begin % align.value() != 0) {
      return name(intervals[i]) + " is not aligned";
    }
    const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - begin;
    const std::uint64_t size = intervals[i].size.count();
    const std::uint64_t padding = (align.value() - size % align.value()) % align.value();
    if (size > room || padding > room - size) {
      return name(intervals[i]) + " leaves the address space";
    }
    extents.push_back({begin, begin + size + padding, i});
    top = std::max(top, extents.back().end);
  }
  if (plan.height.count() != top) {
    return "the height is " + std::to_string(plan.height.count()) +
           ", the highest buffer ends at " + std::to_string(top);
  }
  if (std::optional<std::string> overlap = find_overlap(intervals, extents, edges)) {
    return overlap;
  }
  const std::uint64_t most = most_alive(intervals, extents);
  if (plan.max_live.count() != most) {
    return "max_live is " + std::to_string(plan.max_live.count()) + ", but " +
           std::to_string(most) + " bytes live at one moment";
  }
  return std::nullopt;
}

}  // namespace ebb::inline v0
