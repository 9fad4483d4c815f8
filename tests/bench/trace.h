// SPDX-License-Identifier: Apache-2.0
// A recorded sequence of allocations and frees, ready to be replayed. Used by the replay part of
// the alloc benchmark. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ebb::bench {

enum class OpKind : std::uint32_t { allocate, free, iteration };

struct Op {
  OpKind kind = OpKind::iteration;
  std::uint32_t slot = 0;   // who is allocated or freed: below Trace::slots
  std::uint64_t bytes = 0;  // of an allocation
};

struct Trace {
  std::vector<Op> ops;
  std::size_t slots = 0;         // the most blocks that are alive together
  std::uint64_t live_peak = 0;   // sizes rounded up to 64, as MemoryStats has it
  std::uint64_t iterations = 0;  // that end within the trace
};

// Reads lines "a,thread,id,bytes", "f,thread,id" and "i,thread,n", gzipped or plain; # starts a
// comment. What is still alive at the end is freed there. Threads are ignored: one thread replays
// all, in order. Throws std::runtime_error with the line for anything else.
Trace read_trace(const std::string& path);

}  // namespace ebb::bench
