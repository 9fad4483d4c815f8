// SPDX-License-Identifier: Apache-2.0
// What a search knows at a node, and how that changes and goes back.
#include "plan_mix.h"
#include "plan_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ebb::inline v0 {

namespace {

constexpr std::size_t failed_slots = std::size_t{1} << 18;  // a power of two
// Buffers that a node may look at before it counts for another one.
constexpr std::uint64_t touched_per_node = 1024;
constexpr std::uint64_t nodes_per_cancel = 256;

}  // namespace

PlanSearch::PlanSearch(const PlanProblem& problem)
    : problem_(problem),
      over_(problem.moments.size()),
      neighbours_(problem.buffers.size()),
      failed_(failed_slots) {
  std::vector<std::uint32_t> by_birth(problem.buffers.size());
  std::iota(by_birth.begin(), by_birth.end(), 0U);
  std::stable_sort(by_birth.begin(), by_birth.end(), [&](std::uint32_t a, std::uint32_t b) {
    return problem.buffers[a].first < problem.buffers[b].first;
  });
  for (const std::uint32_t buffer : by_birth) {
    const PlanBuffer& at = problem.buffers[buffer];
    for (const std::uint32_t other : over_[at.first]) {
      neighbours_[buffer].push_back(other);
      neighbours_[other].push_back(buffer);
    }
    for (std::uint32_t section = at.first; section <= at.last; ++section) {
      over_[section].push_back(buffer);
    }
  }
  seen_.assign(problem.buffers.size(), 0);
}

void PlanSearch::reset() {
  const std::size_t sections = problem_.moments.size();
  const std::size_t buffers = problem_.buffers.size();
  floor_.assign(sections, 0);
  left_ = problem_.live;
  joined_.assign(sections, 0);
  born_.assign(sections, 0);
  earliest_.assign(buffers, 0);
  offsets_.assign(buffers, 0);
  placed_.assign(buffers, 0);
  candidates_.clear();
  placed_order_.clear();
  old_floors_.clear();
  old_earliest_.clear();
  unrelated_ = false;
  depth_ = 0;
  for (std::uint32_t buffer = 0; buffer < buffers; ++buffer) {
    const PlanBuffer& at = problem_.buffers[buffer];
    born_[at.first] += plan_mix(buffer);
    for (std::uint32_t section = at.first; section < at.last; ++section) {
      ++joined_[section];
    }
  }
}

void PlanSearch::place(std::uint32_t buffer, std::uint64_t offset) {
  const PlanBuffer& at = problem_.buffers[buffer];
  placed_[buffer] = 1;
  placed_order_.push_back(buffer);
  offsets_[buffer] = offset;
  born_[at.first] -= plan_mix(buffer);
  for (std::uint32_t section = at.first; section <= at.last; ++section) {
    raise(section, offset + at.size);
    left_[section] -= at.size;
    joined_[section] -= section < at.last ? 1 : 0;
  }
}

void PlanSearch::raise(std::uint32_t section, std::uint64_t floor) {
  old_floors_.push_back({section, floor_[section]});
  floor_[section] = floor;
}

// Draws the conclusions of floors that changed: buffers go up with the highest floor under them,
// and a section's floor with the lowest buffer over it. Returns false where the capacity does not
// suffice any more.
bool PlanSearch::settle(Stretch changed) {
  ++settling_;
  Stretch reached = changed;
  for (std::uint32_t section = changed.first; section <= changed.last; ++section) {
    touched_ += over_[section].size();
    for (const std::uint32_t buffer : over_[section]) {
      if (!placed_[buffer] && seen_[buffer] != settling_) {
        seen_[buffer] = settling_;
        push_up(buffer, changed);
        reached.first = std::min(reached.first, problem_.buffers[buffer].first);
        reached.last = std::max(reached.last, problem_.buffers[buffer].last);
      }
    }
  }
  for (std::uint32_t section = reached.first; section <= reached.last; ++section) {
    if (left_[section] > 0 && !lift(section)) {
      return false;
    }
  }
  return true;
}

void PlanSearch::push_up(std::uint32_t buffer, Stretch changed) {
  const PlanBuffer& at = problem_.buffers[buffer];
  std::uint64_t earliest = earliest_[buffer];
  const std::uint32_t last = std::min(changed.last, at.last);
  for (std::uint32_t section = std::max(changed.first, at.first); section <= last; ++section) {
    earliest = std::max(earliest, floor_[section]);
  }
  if (earliest != earliest_[buffer]) {
    old_earliest_.push_back({buffer, earliest_[buffer]});
    earliest_[buffer] = earliest;
  }
}

bool PlanSearch::lift(std::uint32_t section) {
  touched_ += over_[section].size();
  std::uint64_t floor = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint32_t buffer : over_[section]) {
    if (!placed_[buffer]) {
      floor = std::min(floor, earliest_[buffer]);
    }
  }
  if (floor > floor_[section]) {
    raise(section, floor);
  }
  return floor <= capacity_ && left_[section] <= capacity_ - floor;
}

void PlanSearch::undo(Mark mark) {
  for (; old_floors_.size() > mark.floors; old_floors_.pop_back()) {
    floor_[old_floors_.back().section] = old_floors_.back().floor;
  }
  for (; old_earliest_.size() > mark.earliest; old_earliest_.pop_back()) {
    earliest_[old_earliest_.back().buffer] = old_earliest_.back().earliest;
  }
  for (; placed_order_.size() > mark.placed; placed_order_.pop_back()) {
    const std::uint32_t buffer = placed_order_.back();
    const PlanBuffer& at = problem_.buffers[buffer];
    placed_[buffer] = 0;
    born_[at.first] += plan_mix(buffer);
    for (std::uint32_t section = at.first; section <= at.last; ++section) {
      left_[section] += at.size;
      joined_[section] += section < at.last ? 1 : 0;
    }
  }
}

// Pays for a node. Returns false when there is nothing left to pay with, or somebody cancelled.
bool PlanSearch::spend() {
  const std::uint64_t cost = 1 + touched_ / touched_per_node;
  touched_ %= touched_per_node;
  if (nodes_ == 0 || budget_->nodes == 0 || budget_->cancelled) {
    return false;
  }
  --nodes_;
  budget_->nodes -= std::min(budget_->nodes, cost);
  if (++paid_ % nodes_per_cancel == 0 && budget_->cancel && budget_->cancel()) {
    budget_->cancelled = true;
  }
  return !budget_->cancelled;
}

PlanSearch::State PlanSearch::state_of(Stretch stretch) const {
  State state;
  for (std::uint32_t section = stretch.first; section <= stretch.last; ++section) {
    // A section with nothing left says nothing, but where the stretch ends does.
    const std::uint64_t floor = left_[section] > 0 ? floor_[section] : 0;
    const std::uint64_t here = plan_mix(plan_mix(section) + floor);
    state.slot += here + born_[section];
    state.check += plan_mix(here) + plan_mix(born_[section] + section);
  }
  return state;
}

bool PlanSearch::is_known_failure(const State& state) const {
  return failed_[state.slot & (failed_slots - 1)] == state;
}

void PlanSearch::remember(const State& state) {
  failed_[state.slot & (failed_slots - 1)] = state;
}

}  // namespace ebb::inline v0
