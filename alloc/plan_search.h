// SPDX-License-Identifier: Apache-2.0
// The exact search for a plan of a given height. [alloc.plan] Used by plan(), through plan_exact.h.
// One object is one thread's.
//
// After published ideas: sections, canonical solutions and floors that only rise (M. D. Moffitt,
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023), and the choice of what is most constrained (U. Maas et al., "TelaMalloc", ASPLOS 2023).
// The way to branch differs: by the lowest section, not by the next buffer.
//
// A canonical plan has every buffer on the ground or on another one, and every plan can be pushed
// down to such. It is built from below. A section's floor is where the next buffer over it can
// begin at the earliest. Of the sections with the lowest floor one is taken, and either one of the
// buffers that fit there is what begins at this floor, or nothing is: then the floor rises to where
// the first buffer can begin otherwise. These cases exclude each other, so no plan is looked for
// twice. A branch ends where a floor and what is still to come over it exceed the capacity. What is
// still to be placed and the floors say whether a branch can succeed, so branches that failed are
// remembered by a hash of both in 128 bits, whatever lies below. Stretches of time that no unplaced
// buffer joins are solved one by one, and where one fails that the last buffer does not touch, no
// other place for that buffer helps.
#pragma once

#include "plan_problem.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

// What several searches may spend together.
struct PlanBudget {
  std::uint64_t nodes = 0;  // left
  const std::function<bool()>& cancel;
  bool cancelled = false;
};

// By what a search chooses where there is a choice; it never changes what is possible.
struct PlanPreference {
  enum class Section { fewest_choices, least_slack };

  Section section = Section::fewest_choices;
  std::vector<std::uint32_t> rank;  // by buffer: lower is tried earlier
};

class PlanSearch {
 public:
  enum class Result { found, impossible, gave_up };

  explicit PlanSearch(const PlanProblem& problem);

  // Looks for a plan no higher than capacity units in at most `nodes` steps, of which the budget
  // may count some several times. Once it gave up, another call with the same capacity profits from
  // what failed before.
  Result run(std::uint64_t capacity, const PlanPreference& preference, std::uint64_t nodes,
             PlanBudget& budget);
  // By buffer, in units. Valid after `found`.
  const std::vector<std::uint64_t>& offsets() const noexcept { return offsets_; }

 private:
  struct Stretch {  // sections, both ends included
    std::uint32_t first;
    std::uint32_t last;
  };
  struct OldFloor {
    std::uint32_t section;
    std::uint64_t floor;
  };
  struct OldEarliest {
    std::uint32_t buffer;
    std::uint64_t earliest;
  };
  struct Mark {  // sizes of the three trails
    std::size_t placed;
    std::size_t floors;
    std::size_t earliest;
  };
  struct Choice {
    std::uint32_t section = 0;
    std::uint64_t floor = 0;
    std::uint64_t slack = 0;
    std::size_t count = 0;
  };
  struct State {  // a hash of a stretch's floors and unplaced buffers
    std::uint64_t slot = 0;
    std::uint64_t check = 0;

    bool operator==(const State&) const = default;
  };

  void reset();
  Result solve_parts(Stretch within, Stretch changed);
  Result solve(Stretch stretch);
  Result place_each(Stretch stretch, const Choice& choice, std::size_t begin);
  Result leave_empty(Stretch stretch, const Choice& choice, std::size_t begin);

  Choice choose(Stretch stretch) const;
  void gather(const Choice& choice);
  std::uint64_t floor_without(const Choice& choice, std::size_t begin);
  void place(std::uint32_t buffer, std::uint64_t offset);
  void raise(std::uint32_t section, std::uint64_t floor);
  bool settle(Stretch changed);
  void push_up(std::uint32_t buffer, Stretch changed);
  bool lift(std::uint32_t section);
  Mark mark() const { return {placed_order_.size(), old_floors_.size(), old_earliest_.size()}; }
  void undo(Mark mark);
  bool spend();
  State state_of(Stretch stretch) const;
  bool is_known_failure(const State& state) const;
  void remember(const State& state);

  const PlanProblem& problem_;
  std::vector<std::vector<std::uint32_t>> over_;        // by section: the buffers alive in it
  std::vector<std::vector<std::uint32_t>> neighbours_;  // by buffer: those it lives with
  std::vector<State> failed_;

  std::uint64_t capacity_ = 0;
  const PlanPreference* preference_ = nullptr;
  PlanBudget* budget_ = nullptr;
  std::uint64_t nodes_ = 0;    // steps left to this run
  std::uint64_t touched_ = 0;  // not paid for yet
  std::uint64_t paid_ = 0;     // nodes, in all runs
  std::size_t depth_ = 0;
  bool unrelated_ = false;  // the part that failed last lies apart from what changed last

  std::vector<std::uint64_t> floor_;   // by section
  std::vector<std::uint64_t> left_;    // by section: units unplaced
  std::vector<std::uint32_t> joined_;  // by section: unplaced buffers that live in the next one too
  std::vector<std::uint64_t> earliest_;  // by buffer, while unplaced: the highest floor under it
  std::vector<std::uint64_t> offsets_;
  std::vector<char> placed_;
  std::vector<std::uint64_t>
      born_;  // by section: hashes of the unplaced that begin there, added up
  std::vector<std::uint64_t> seen_;  // by buffer: the last settling that looked at it
  std::uint64_t settling_ = 0;
  std::vector<std::uint32_t> candidates_;  // a stack, shared by all depths
  std::vector<std::uint32_t> placed_order_;
  std::vector<OldFloor> old_floors_;
  std::vector<OldEarliest> old_earliest_;
};

}  // namespace ebb::inline v0
