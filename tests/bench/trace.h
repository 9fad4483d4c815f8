// SPDX-License-Identifier: Apache-2.0
// A recorded sequence of allocations and frees, ready to be replayed. Used by the replay part of
// the alloc benchmark. Shared, const.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ebb::bench {

enum class OpKind : std::uint32_t { allocate, free, iteration };

struct Op {
  OpKind kind = OpKind::iteration;
  std::uint32_t slot = 0;   // who is allocated or freed: below Trace::slots
  std::uint64_t bytes = 0;  // of an allocation
};

struct Trace {
  std::uint64_t live_peak = 0;   // sizes rounded up to 64, as MemoryStats has it
  std::uint64_t slots = 0;       // the most blocks that are alive together
  std::uint64_t iterations = 0;  // that end within the trace
  std::uint64_t op_count = 0;

  // What stands behind this struct, in the same mapping.
  std::span<const Op> ops() const { return {reinterpret_cast<const Op*>(this + 1), op_count}; }
};

// Reads lines "a,thread,id,bytes", "f,thread,id" and "i,thread,n", gzipped or plain; # starts a
// comment. Stops after iterations_max iterations; what is alive at the end is freed there. Threads
// are ignored: one thread replays all, in order. A child process does the reading, so that this
// one's heap is as it was; call it while there is one thread. Throws std::runtime_error when it
// cannot; the child says why.
std::shared_ptr<const Trace> read_trace(const std::string& path, std::uint64_t iterations_max);

}  // namespace ebb::bench
