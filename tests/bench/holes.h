// SPDX-License-Identifier: Apache-2.0
// A heap full of holes, and what a request costs there. Part of the alloc benchmark.
#pragma once

#include "harness.h"

namespace ebb::bench {

// Makes 65,536 holes of mixed sizes above the slab limit, none next to another, and asks for sizes
// that more than nine in ten of them are too small for. Returns microseconds per allocation and
// free, as "holes_us".
Figures measure_holes(const Effort& effort);

}  // namespace ebb::bench
