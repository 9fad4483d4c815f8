// SPDX-License-Identifier: Apache-2.0
// Steps on the device: as a graph and one call after the other; copies beside computing. Part of
// the cuda benchmark.
#pragma once

#include "harness.h"

namespace ebb::bench {

// A step is run in an iteration each time, or by a GraphStep that has captured it; times are means
// over steps that are queued one after the other, the device's end included. Figures, for steps of
// 64 small fills and of examples/mlp with a batch of 64:
//   step_us/fills/eager, /graph   microseconds per step
//   graph_speedup/fills           eager over graph
// and the same as mlp_step.
Figures measure_graphs(const Effort& effort);

// Batches are copied from pinned memory while matrices are multiplied on another stream:
//   overlap_ms/copies, /products  either alone
//   overlap_ms/serial, /streams   both, on one stream and on two
//   copy_overlap                  serial over streams; 2 where either takes the same time
Figures measure_overlap(const Effort& effort);

}  // namespace ebb::bench
