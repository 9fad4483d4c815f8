// SPDX-License-Identifier: Apache-2.0
// Training steps of examples/mlp with and without a guard around them, in turn in one process.
// Used by the gc benchmark.
#pragma once

#include "harness.h"

namespace ebb::bench {

// Measures the step of the trainer (784-512-512-10, batch 64, made-up data, all cores).
//   mlp_step_ms/unguarded, /guarded   mean time of a step, all tensors charged to the runtime, or
//                                     each step in an iteration of its own
//   mlp_step_over_unguarded           guarded over unguarded
//   mlp_step_stragglers               how many tensors a close found alive, on average
// and the same as mlp_fresh_gradients, where every step makes its gradients anew and they live on
// over the close, to be dropped by the next step. All are medians of rounds.
Figures measure_mlp_steps(const Effort& effort);

}  // namespace ebb::bench
