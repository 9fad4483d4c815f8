// SPDX-License-Identifier: Apache-2.0
// A heap full of holes, and what a request costs there. Part of the alloc and cuda benchmarks.
#pragma once

#include "harness.h"
#include "heap_use.h"

namespace ebb::bench {

// Makes 65,536 holes of mixed sizes above the slab limit, none next to another, and returns
// nanoseconds per allocation and free of request bytes. 0: of sizes that more than nine in ten of
// the holes are too small for.
double among_holes_ns(const HeapUse& use, ebb::Bytes request, const Effort& effort);

// The latter in microseconds, on the CPU, as "holes_us".
Figures measure_holes(const Effort& effort);

}  // namespace ebb::bench
