// SPDX-License-Identifier: Apache-2.0
// Packs buffers whose lifetimes are known into as little address space as possible. [alloc.plan]
// Used by the replay of iterations, and by `ebb plan`. Pure functions: any thread, no state; they
// allocate, and may take long, so call them off the training path.
#pragma once

#include <ebb/alloc/bytes.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// One buffer: alive from moment lower up to, but not at, moment upper. Moments are any numbers that
// grow with the order in which work is issued.
struct PlanInterval {
  std::uint64_t id = 0;  // the caller's own, unique within one call
  std::uint64_t lower = 0;
  std::uint64_t upper = 0;
  Bytes size;
  // The stream that uses it. Within a lane, memory is free again at upper; another lane may have it
  // only after an edge, or a chain of them, led there.
  std::uint32_t lane = 0;
};

// Lane `from` recorded an event at moment `recorded`, and lane `to` waited for it at the later
// moment `waited`. What ended on `from` by then may be used again on `to` from then on.
struct LaneEdge {
  std::uint32_t from = 0;
  std::uint64_t recorded = 0;
  std::uint32_t to = 0;
  std::uint64_t waited = 0;
};

struct PlanOptions {
  // Stop as soon as the height is no more than this, and explain where that could not be done.
  // None: look for the least height.
  std::optional<Bytes> capacity;
  // How many steps the exact search may take (one that touches very many buffers counts for
  // several); 0 means greedy orders only. The result depends on nothing else, unless cancelled.
  std::uint64_t nodes = 2'000'000;
  // Asked now and then by the calling thread, must not throw. True: return the best plan so far.
  std::function<bool()> cancel;
  std::vector<LaneEdge> edges;
};

// Why a capacity was not met.
struct PlanShortfall {
  std::uint64_t moment = 0;        // where it is tightest
  std::vector<std::uint64_t> ids;  // what lives at that moment, largest first
  Bytes live;                      // their bytes together
  Bytes excess;                    // by how much the bound, or else the best plan, is too high
  bool proven = false;             // no plan meets the capacity; else none was found
};

// Returns by how much a plan's height exceeds what lives at most: 0.02 is 2 %; 0 where nothing
// does.
double plan_gap(Bytes height, Bytes max_live) noexcept;

struct Plan {
  std::vector<Bytes> offsets;  // in the order of the intervals, multiples of the alignment
  Bytes height;                // where the highest buffer ends, its size rounded up
  Bytes max_live;              // most bytes alive at a moment, sizes rounded up: none can be lower
  bool exact = false;          // the height is proven least
  bool cut_short = false;      // nodes, cancel or size ended the search before it was settled
  std::uint64_t nodes = 0;     // spent by the search
  std::optional<PlanShortfall> shortfall;  // where a capacity was asked for and not met

  double gap() const noexcept { return plan_gap(height, max_live); }
};

// Returns offsets at which no two buffers share an address while either may be used. Greedy orders
// first (20,000 buffers in half a second), then, for up to 4,000 buffers of one lane, an exact
// search. Throws std::invalid_argument for a size of 0, for upper <= lower, for an id that comes
// twice, for sizes whose sum reaches 2^63, for more than 64 lanes, and for an edge that waits
// no later than it is recorded; std::bad_alloc.
Plan plan(std::span<const PlanInterval> intervals, Align align, const PlanOptions& options = {});

// Checks a plan by rules of its own: one offset each, alignment, no overlap in time and space,
// lanes, height and max_live. Returns the first fault in words, or nothing. Throws std::bad_alloc
// only.
std::optional<std::string> validate(std::span<const PlanInterval> intervals, Align align,
                                    const Plan& plan, std::span<const LaneEdge> edges = {});

}  // namespace ebb::inline v0
