// SPDX-License-Identifier: Apache-2.0
// How the search branches; its state is in plan_search_state.cpp.
#include "plan_search.h"

#include <algorithm>
#include <limits>

namespace ebb::inline v0 {

namespace {

constexpr std::uint64_t no_floor = std::numeric_limits<std::uint64_t>::max();
// Calls of solve() within each other: half a KiB of stack each, 3 MiB together.
constexpr std::size_t max_depth = 6000;

}  // namespace

PlanSearch::Result PlanSearch::run(std::uint64_t capacity, const PlanPreference& preference,
                                   std::uint64_t nodes, PlanBudget& budget) {
  if (capacity != capacity_) {
    std::fill(failed_.begin(), failed_.end(), State{});
    capacity_ = capacity;
  }
  preference_ = &preference;
  budget_ = &budget;
  nodes_ = nodes;
  reset();
  if (problem_.moments.empty()) {
    return Result::found;
  }
  const Stretch all{0, static_cast<std::uint32_t>(problem_.moments.size() - 1)};
  return settle(all) ? solve_parts(all, all) : Result::impossible;
}

// The shortest part first: it fails soonest.
PlanSearch::Result PlanSearch::solve_parts(Stretch within, Stretch changed) {
  std::vector<Stretch> parts;
  for (std::uint32_t section = within.first; section <= within.last; ++section) {
    if (left_[section] == 0) {
      continue;
    }
    const std::uint32_t first = section;
    while (section < within.last && joined_[section] > 0) {
      ++section;
    }
    parts.push_back({first, section});
  }
  std::sort(parts.begin(), parts.end(), [](Stretch a, Stretch b) {
    return std::pair(a.last - a.first, a.first) < std::pair(b.last - b.first, b.first);
  });
  for (const Stretch part : parts) {
    const Result result = solve(part);
    if (result != Result::found) {
      unrelated_ = part.last < changed.first || part.first > changed.last;
      return result;
    }
  }
  return Result::found;
}

// Solves a stretch that no unplaced buffer leaves. On failure everything is as it was.
PlanSearch::Result PlanSearch::solve(Stretch stretch) {
  if (depth_ >= max_depth) {
    return Result::gave_up;
  }
  const State state = state_of(stretch);
  if (is_known_failure(state)) {
    return Result::impossible;
  }
  const Choice choice = choose(stretch);
  const std::size_t begin = candidates_.size();
  gather(choice);
  ++depth_;
  Result result = place_each(stretch, choice, begin);
  if (result == Result::impossible && !unrelated_ && choice.slack > 0) {
    result = leave_empty(stretch, choice, begin);
  }
  --depth_;
  unrelated_ = false;
  candidates_.resize(begin);
  if (result == Result::impossible) {
    remember(state);
  }
  return result;
}

// Sets unrelated_ where it fails for a reason that none of the candidates touches.
PlanSearch::Result PlanSearch::place_each(Stretch stretch, const Choice& choice,
                                          std::size_t begin) {
  const std::size_t end = candidates_.size();
  const PlanBuffer* last = nullptr;
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint32_t buffer = candidates_[i];
    const PlanBuffer& at = problem_.buffers[buffer];
    if (last != nullptr && last->first == at.first && last->last == at.last &&
        last->size == at.size) {
      continue;  // as good as the one that just failed
    }
    last = &at;
    if (!spend()) {
      return Result::gave_up;
    }
    const Mark before = mark();
    place(buffer, choice.floor);
    const Stretch changed{at.first, at.last};
    unrelated_ = false;
    const Result result = settle(changed) ? solve_parts(stretch, changed) : Result::impossible;
    if (result == Result::found) {
      return result;
    }
    undo(before);
    if (result == Result::gave_up || unrelated_) {
      return result;
    }
  }
  return Result::impossible;
}

PlanSearch::Result PlanSearch::leave_empty(Stretch stretch, const Choice& choice,
                                           std::size_t begin) {
  const std::uint64_t floor = floor_without(choice, begin);
  if (floor == no_floor || floor > capacity_ || capacity_ - floor < left_[choice.section]) {
    return Result::impossible;
  }
  if (!spend()) {
    return Result::gave_up;
  }
  const Mark before = mark();
  raise(choice.section, floor);
  const Result result =
      settle({choice.section, choice.section}) ? solve(stretch) : Result::impossible;
  if (result != Result::found) {
    undo(before);
  }
  return result;
}

// The section to branch on, of those with the lowest floor.
PlanSearch::Choice PlanSearch::choose(Stretch stretch) const {
  std::uint64_t lowest = no_floor;
  for (std::uint32_t section = stretch.first; section <= stretch.last; ++section) {
    if (left_[section] > 0) {
      lowest = std::min(lowest, floor_[section]);
    }
  }
  const bool by_slack = preference_->section == PlanPreference::Section::least_slack;
  Choice best{0, lowest, no_floor, std::numeric_limits<std::size_t>::max()};
  for (std::uint32_t section = stretch.first; section <= stretch.last; ++section) {
    if (left_[section] == 0 || floor_[section] != lowest) {
      continue;
    }
    Choice here{section, lowest, capacity_ - lowest - left_[section], 0};
    for (const std::uint32_t buffer : over_[section]) {
      here.count += !placed_[buffer] && earliest_[buffer] == lowest ? 1 : 0;
    }
    here.count += here.slack > 0 ? 1 : 0;  // leaving it empty is a choice as well
    const bool better = by_slack
                            ? std::pair(here.slack, here.count) < std::pair(best.slack, best.count)
                            : std::pair(here.count, here.slack) < std::pair(best.count, best.slack);
    if (better) {
      best = here;
    }
  }
  return best;
}

// Appends the buffers that fit where the choice is, those tried first in front.
void PlanSearch::gather(const Choice& choice) {
  const auto begin = static_cast<std::ptrdiff_t>(candidates_.size());
  for (const std::uint32_t buffer : over_[choice.section]) {
    if (!placed_[buffer] && earliest_[buffer] == choice.floor) {
      candidates_.push_back(buffer);
    }
  }
  const std::vector<std::uint32_t>& rank = preference_->rank;
  std::sort(candidates_.begin() + begin, candidates_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return rank[a] < rank[b]; });
}

// Where the lowest buffer over the section can begin if none of the candidates does so at the
// floor: one of the others at its earliest; or a candidate, on a buffer beside the section that is
// placed below it. (Were what is below it over the section, then the candidate would not be the
// lowest.)
std::uint64_t PlanSearch::floor_without(const Choice& choice, std::size_t begin) {
  std::uint64_t floor = no_floor;
  for (const std::uint32_t buffer : over_[choice.section]) {
    if (!placed_[buffer] && earliest_[buffer] > choice.floor) {
      floor = std::min(floor, earliest_[buffer]);
    }
  }
  for (std::size_t i = begin; i < candidates_.size(); ++i) {
    touched_ += neighbours_[candidates_[i]].size();
    for (const std::uint32_t other : neighbours_[candidates_[i]]) {
      const PlanBuffer& at = problem_.buffers[other];
      const bool beside = at.last < choice.section || at.first > choice.section;
      if (!placed_[other] && beside) {
        floor = std::min(floor, earliest_[other] + at.size);
      }
    }
  }
  return floor;
}

}  // namespace ebb::inline v0
