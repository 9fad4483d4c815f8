// SPDX-License-Identifier: Apache-2.0
// What a steady iteration asks of the driver. Part of the cuda benchmark. [alloc.cuda]
#pragma once

#include "bench_device.h"
#include "harness.h"

#include <cstdint>
#include <string>

namespace ebb::bench {

// Calls so far. All are counted on a simulated device; on a GPU only what the heaps ask of their
// sources, as a backend never waits for a device.
struct DriverCalls {
  std::uint64_t backend = 0;  // for memory, and to make or destroy streams, events and graphs
  std::uint64_t source = 0;   // of these, what heaps of device and pinned memory ask for
  std::uint64_t records = 0;  // of events
  std::uint64_t queries = 0;  // whether an event is done; never blocks
  std::uint64_t waits = 0;    // of one stream for another; never blocks

  static DriverCalls so_far(BenchDevice& device);
};

// Adds how many there were per iteration since before, as "backend_calls_per_iteration/NAME" and so
// on.
void add_calls(const DriverCalls& before, BenchDevice& device, double iterations,
               const std::string& name, Figures& figures);

}  // namespace ebb::bench
