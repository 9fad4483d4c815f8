// SPDX-License-Identifier: Apache-2.0
// What a block of device memory costs, made and dropped on one stream. Part of the cuda benchmark.
#pragma once

#include "harness.h"
#include "owned_bytes.h"

#include <array>
#include <cstddef>

namespace ebb::bench {

inline constexpr std::array<std::size_t, 4> pair_sizes{1024, 64 << 10, 1 << 20, 16 << 20};
inline constexpr int pairs_per_iteration = 1000;

// Returns nanoseconds for a storage of an iteration, made and dropped, with a plan and without, as
// "pair_ns/planned/SIZE" and "pair_ns/unplanned/SIZE".
Figures measure_pairs(const Effort& effort);

// The same for a bare block among 65,536 holes: of 1 KiB, as "holes_ns", and of sizes that nine in
// ten of the holes are too small for, as "holes_filled_ns".
Figures measure_device_holes(const Effort& effort);

}  // namespace ebb::bench
