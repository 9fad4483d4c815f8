// SPDX-License-Identifier: Apache-2.0
// Replays a trace against a heap, or against malloc, and measures time, faults and memory.
// Single-threaded; resident memory is the process's, so each trace wants a process of its own.
#pragma once

#include "harness.h"
#include "trace.h"

namespace ebb::bench {

// Figures, times being medians over the iterations of a replay but its first:
//   time_ms, faults     a byte written in every page of a block; minor faults per iteration
//   filled_ms           every byte written
//   untouched_ms        nothing written: the allocator alone
//   resident_over_live  peak of resident memory, less what was there before, over the live peak
// The trace is replayed twice with pages touched, and the second replay is measured. A quick run
// writes nothing, since pages take most of the time.
Figures replay_malloc(const Trace& trace, const Effort& effort);

// The same through a heap of a pool, and:
//   reserved_over_live    peak of committed bytes over the live peak
//   reserved_drift_bytes  what the second replay reserved beyond the first
Figures replay_heap(const Trace& trace, const Effort& effort);

// The same with plans, made between the first replay and the second, and:
//   reserved_over_live  what is committed at the end over the live peak: before the plan is first
//                       followed, more may have been
//   displaced           blocks of the second replay that did not get their planned address
Figures replay_planned(const Trace& trace, const Effort& effort);

}  // namespace ebb::bench
