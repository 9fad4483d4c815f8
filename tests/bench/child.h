// SPDX-License-Identifier: Apache-2.0
// A side of a benchmark as a process of its own: starting it, and what it does. Used by run().
#pragma once

#include "harness.h"

namespace ebb::bench {

// Runs side once as a child of this program. Throws std::runtime_error when it fails.
Figures run_child(const Side& side, const Effort& effort);

// What the child does: measures the side called name in part and prints a line "figure value" for
// each figure. Returns the exit code.
int run_side(const Benchmark& benchmark, const std::string& name, const std::string& part,
             const Effort& effort);

}  // namespace ebb::bench
