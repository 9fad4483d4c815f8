// SPDX-License-Identifier: Apache-2.0
// The rival on a GPU: CUDA's own stream-ordered allocator, tuned to give nothing back. Part of the
// cuda benchmark, and in a build without CUDA missing. One thread.
#pragma once

#include "harness.h"

#include <string>

namespace ebb::bench {

// Returns why it cannot run here, or an empty string.
std::string malloc_async_missing();

// Returns nanoseconds for cudaMallocAsync and cudaFreeAsync of the sizes that ours are measured
// for, as both "pair_ns/planned/SIZE" and "pair_ns/unplanned/SIZE", since it knows no plans.
Figures measure_malloc_async(const Effort& effort);

}  // namespace ebb::bench
