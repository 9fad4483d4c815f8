// SPDX-License-Identifier: Apache-2.0
// A recorded sequence of allocations and frees, ready to be replayed. Used by the replay parts of
// the alloc and cuda benchmarks. Shared, const.
#pragma once

#include <ebb/alloc/bytes.h>

#include <array>
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
  std::uint64_t live_peak = 0;   // sizes rounded up to the alignment, as MemoryStats has it
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
std::shared_ptr<const Trace> read_trace(const std::string& path, std::uint64_t iterations_max,
                                        ebb::Align align = ebb::default_align_cpu);

// The traces of training that there are: the names of files in EBB_TEST_DATA/traces.
inline constexpr std::array trace_names{"mlp", "gpt", "resnet", "lstm"};

// Returns the file of one of them, or an empty string; and what is to be done where it is missing.
std::string trace_path(const std::string& name);
std::string trace_remedy(const std::string& name);

}  // namespace ebb::bench
