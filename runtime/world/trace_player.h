// SPDX-License-Identifier: Apache-2.0
// Runs a trace through a memory: allocates and frees what it says, when it says so, and measures.
// Used by `ebb replay`. Single-threaded.
#pragma once

#include "trace.h"
#include "trace_memory.h"

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace ebb::world {

// A block was written by somebody else: the memory is broken.
class BrokenBlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Measure : std::uint8_t {
  space,  // and faults: looks at the memory's figures after each allocation
  time,   // does nothing but allocate and free
};

struct PlayOptions {
  Measure measure = Measure::space;
  // Writes into each page of each block, and looks at it before it is freed.
  bool touch = false;
};

// What one iteration did; bytes are rounded up to the alignment.
struct PlayedIteration {
  std::uint64_t calls = 0;  // allocations and frees
  std::uint64_t live_before = 0;
  std::uint64_t live_peak = 0;
  std::uint64_t reserved_peak = 0;
  std::uint64_t faults = 0;
  double ns = 0;               // of the whole iteration
  std::uint64_t planned = 0;   // PlanSetStats of the time when it began
  std::uint64_t followed = 0;  // 1 where it was followed to its end
  std::uint64_t displaced = 0;
};

struct Played {
  std::vector<PlayedIteration> iterations;
  PlayedIteration after;  // of what comes after the last
  PlayedIteration before;
};

// plans may be null, and are worked on after each iteration. All blocks are freed when this returns
// or throws. Throws BrokenBlock, and std::runtime_error where the memory refuses a block.
Played play(const Trace& trace, HeapMemory& memory, PlanSet* plans, const PlayOptions& options);
Played play(const Trace& trace, SystemMemory& memory, const PlayOptions& options);

}  // namespace ebb::world
