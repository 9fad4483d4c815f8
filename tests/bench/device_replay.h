// SPDX-License-Identifier: Apache-2.0
// A trace replayed in a heap of the device: what is reserved. Part of the cuda benchmark.
#pragma once

#include "harness.h"
#include "trace.h"

#include <string>

namespace ebb::bench {

// Replays the trace of a file on one stream and returns, as "reserved_over_live/planned/NAME" and
// ".../unplanned/NAME", the most bytes that were committed over the live peak: with plans, from the
// iteration after the first that had one; without, from the beginning, twice. On a simulated device
// again with pages of 64 KiB, as planned_64k and unplanned_64k: pages of 2 MiB round a small trace
// up. Also its "live_peak_bytes/NAME".
Figures replay_on_device(const std::string& name, const std::string& path, const Effort& effort);

}  // namespace ebb::bench
