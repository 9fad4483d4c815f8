// SPDX-License-Identifier: Apache-2.0
#include "plan_exact.h"

#include "plan_mix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace ebb::inline v0 {

namespace {

using Result = PlanSearch::Result;

// How long the first runs may be, for each buffer. A search that began badly is better begun again
// than continued.
constexpr std::uint64_t run_nodes = 4;
// Of what is left, for the first try at the least height there can be, and for each later one.
constexpr std::uint64_t first_share = 2;
constexpr std::uint64_t later_share = 4;

// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...: within a factor of the best restarts, whatever these are
// (Luby, Sinclair, Zuckerman 1993). Counted from 1.
std::uint64_t luby(std::uint64_t i) {
  std::uint64_t length = 1;  // of the series so far: 2^k - 1
  while (length < i) {
    length = 2 * length + 1;
  }
  return length == i ? (length + 1) / 2 : luby(i - length / 2);
}

// Preferences for the searches of one problem: four orders in turn, with either choice of sections,
// first as they are and later with repeatable noise.
class Preferences {
 public:
  explicit Preferences(const PlanProblem& problem) : problem_(problem) {
    for (const PlanBuffer& buffer : problem.buffers) {
      const auto size = static_cast<double>(buffer.size);
      const auto width = static_cast<double>(buffer.width);
      const auto crowd = static_cast<double>(*std::max_element(
          problem.live.begin() + buffer.first, problem.live.begin() + buffer.last + 1));
      // Logarithms, so that noise is a factor.
      keys_[0].push_back(std::log(width));
      keys_[1].push_back(std::log(size) + std::log(width));
      keys_[2].push_back(3 * std::log(crowd) + std::log(width));
      keys_[3].push_back(std::log(size));
    }
  }

  PlanPreference next() {
    const std::uint64_t turn = turn_++;
    const std::vector<double>& keys = keys_[turn % keys_.size()];
    PlanPreference preference;
    preference.section = turn / keys_.size() % 2 == 0 ? PlanPreference::Section::least_slack
                                                      : PlanPreference::Section::fewest_choices;
    const double noise = turn < 2 * keys_.size() ? 0.0 : 1.0;
    std::vector<double> values(keys);
    for (std::size_t i = 0; i < values.size(); ++i) {
      // From -1 to 1.
      values[i] += noise * (static_cast<double>(plan_mix(turn * values.size() + i)) * 0x1p-63 - 1);
    }
    std::vector<std::uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return values[a] > values[b]; });
    preference.rank.resize(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      preference.rank[order[i]] = i;
    }
    return preference;
  }

  // How many nodes a run by the last preference gets.
  std::uint64_t patience() const {
    const std::uint64_t rounds = (turn_ + 2 * keys_.size() - 1) / (2 * keys_.size());
    return run_nodes * problem_.buffers.size() * luby(rounds);
  }

 private:
  const PlanProblem& problem_;
  std::array<std::vector<double>, 4> keys_;
  std::uint64_t turn_ = 0;
};

// Searches for a plan no higher than capacity, again and again, for some nodes in all.
Result search_for(PlanSearch& search, Preferences preferences, std::uint64_t capacity,
                  std::uint64_t nodes, PlanBudget& budget) {
  const std::uint64_t end = budget.nodes - std::min(budget.nodes, nodes);
  Result result = Result::gave_up;
  while (result == Result::gave_up && budget.nodes > end && !budget.cancelled) {
    const PlanPreference preference = preferences.next();
    const std::uint64_t patience = std::min(preferences.patience(), budget.nodes - end);
    result = search.run(capacity, preference, patience, budget);
  }
  return result;
}

PlanDraft draft_of(const PlanProblem& problem, const PlanSearch& search) {
  PlanDraft draft{search.offsets(), 0};
  for (std::size_t i = 0; i < draft.offsets.size(); ++i) {
    draft.height = std::max(draft.height, draft.offsets[i] + problem.buffers[i].size);
  }
  return draft;
}

}  // namespace

std::uint64_t fit_plan(const PlanProblem& problem, PlanDraft& draft, std::uint64_t capacity,
                       PlanBudget& budget) {
  if (capacity < problem.max_live) {
    return problem.max_live;
  }
  PlanSearch search(problem);
  const Result result = search_for(search, Preferences(problem), capacity, budget.nodes, budget);
  if (result == Result::found) {
    draft = draft_of(problem, search);
  }
  return result == Result::impossible ? capacity + 1 : problem.max_live;
}

std::uint64_t lower_plan(const PlanProblem& problem, PlanDraft& draft, PlanBudget& budget) {
  PlanSearch search(problem);
  const Preferences preferences(problem);
  std::uint64_t bound = problem.max_live;
  std::uint64_t hoped = bound;  // the least height that has not been tried in vain
  std::uint64_t target = bound;
  std::uint64_t share = first_share;
  while (hoped < draft.height && budget.nodes > 0 && !budget.cancelled) {
    const std::uint64_t nodes = (budget.nodes + share - 1) / share;
    const Result result = search_for(search, preferences, target, nodes, budget);
    if (result == Result::found) {
      draft = draft_of(problem, search);
    } else {
      hoped = target + 1;
      bound = result == Result::impossible ? hoped : bound;
    }
    // The middle of what is lower than the draft.
    target = hoped + (std::max(draft.height, hoped + 1) - 1 - hoped) / 2;
    share = later_share;
  }
  return bound;
}

}  // namespace ebb::inline v0
