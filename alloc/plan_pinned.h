// SPDX-License-Identifier: Apache-2.0
// Plans in which some offsets are given. Used for iterations that begin alike. Pure functions.
#pragma once

#include <ebb/alloc/plan.h>

#include <optional>
#include <span>

namespace ebb::inline v0 {

// Returns the lowest of several greedy orders' plans around the pinned buffers (one entry for each
// interval), or nothing where those are in each other's way. Throws std::bad_alloc.
std::optional<Plan> plan_around(std::span<const PlanInterval> intervals, Align align,
                                std::span<const std::optional<Bytes>> pinned);

}  // namespace ebb::inline v0
