// SPDX-License-Identifier: Apache-2.0
#include "plan_problem.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_set>

namespace ebb::inline v0 {

namespace {

// Sums of sizes, and so every offset, stay below it; nothing later has to look for overflow.
constexpr std::uint64_t total_limit = std::uint64_t{1} << 63;

[[noreturn]] void refuse(const PlanInterval& interval, const char* what) {
  throw std::invalid_argument("[plan] interval " + std::to_string(interval.id) + " " + what);
}

std::uint64_t rounded(std::uint64_t size, std::uint64_t align) {
  return (size + align - 1) & ~(align - 1);
}

void check(std::span<const PlanInterval> intervals, std::uint64_t align) {
  if (intervals.size() >= std::numeric_limits<std::uint32_t>::max()) {
    throw std::invalid_argument("[plan] more than 2^32 - 2 intervals");
  }
  if (align >= total_limit) {
    throw std::invalid_argument("[plan] an alignment of 2^63 or more");
  }
  std::unordered_set<std::uint64_t> ids;
  ids.reserve(intervals.size());
  std::uint64_t total = 0;
  for (const PlanInterval& interval : intervals) {
    if (interval.size.count() == 0) {
      refuse(interval, "has a size of 0");
    }
    if (interval.upper <= interval.lower) {
      refuse(interval, "does not end after it begins");
    }
    if (!ids.insert(interval.id).second) {
      refuse(interval, "comes twice");
    }
    if (interval.size.count() > total_limit - align) {
      refuse(interval, "is larger than 2^63 bytes, less the alignment");
    }
    total += rounded(interval.size.count(), align);
    if (total >= total_limit) {
      refuse(interval, "makes the sum of all sizes 2^63 bytes or more");
    }
  }
}

struct Event {
  std::uint64_t moment;
  bool birth;  // deaths sort first: lifetimes are half-open
  std::uint32_t buffer;

  // clang-tidy 14 takes the zero that comparisons are rewritten to for a null pointer.
  auto operator<=>(const Event&) const = default;  // NOLINT(modernize-use-nullptr)
};

std::vector<Event> events_of(std::span<const PlanInterval> intervals) {
  std::vector<Event> events;
  events.reserve(2 * intervals.size());
  for (std::uint32_t i = 0; i < intervals.size(); ++i) {
    events.push_back({intervals[i].lower, true, i});
    events.push_back({intervals[i].upper, false, i});
  }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

PlanProblem make_plan_problem(std::span<const PlanInterval> intervals, Align align) {
  check(intervals, align.value());
  PlanProblem problem;
  problem.unit = 0;
  for (const PlanInterval& interval : intervals) {
    const std::uint64_t size = rounded(interval.size.count(), align.value());
    problem.buffers.push_back({0, 0, size, interval.upper - interval.lower});
    problem.unit = std::gcd(problem.unit, size);
  }
  problem.unit = std::max<std::uint64_t>(problem.unit, 1);
  for (PlanBuffer& buffer : problem.buffers) {
    buffer.size /= problem.unit;
  }

  std::uint64_t live = 0;
  bool open = false;  // the current section still takes births
  for (const Event& event : events_of(intervals)) {
    PlanBuffer& buffer = problem.buffers[event.buffer];
    if (!event.birth) {
      buffer.last = static_cast<std::uint32_t>(problem.moments.size() - 1);
      live -= buffer.size;
      open = false;
      continue;
    }
    if (!open) {
      problem.moments.push_back(0);
      problem.live.push_back(0);
      open = true;
    }
    buffer.first = static_cast<std::uint32_t>(problem.moments.size() - 1);
    live += buffer.size;
    problem.moments.back() = event.moment;
    problem.live.back() = live;
    problem.max_live = std::max(problem.max_live, live);
  }
  return problem;
}

}  // namespace ebb::inline v0
