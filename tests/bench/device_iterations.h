// SPDX-License-Identifier: Apache-2.0
// Iterations of a loop on a device that have settled: what they ask of the driver, and whether they
// follow their plan. Part of the cuda benchmark.
#pragma once

#include "harness.h"

#include <string>

namespace ebb::bench {

// The tensors of a recorded trace, made in the iterations of a loop on the device's stream. Figures
// are those of add_calls, over the second half of the trace, and
//   planned_share/NAME   how many of these iterations followed a plan for all that they made
Figures measure_trace_iterations(const std::string& name, const std::string& path,
                                 const Effort& effort);

// The same of training steps of examples/mlp, whose batches come from pinned memory and whose
// losses are logged, as NAME mlp_step.
Figures measure_mlp_iterations(const Effort& effort);

}  // namespace ebb::bench
