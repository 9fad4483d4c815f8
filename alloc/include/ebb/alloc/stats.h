// SPDX-License-Identifier: Apache-2.0
// What a heap or a pool holds, in numbers. Values: free to copy and use on any thread.
#pragma once

#include <ebb/alloc/bytes.h>

#include <cstdint>

namespace ebb::inline v0 {

// Live sizes are rounded up to the alignment, as the heap sets them aside. Reserved means pages
// committed (touched and not returned), never address space. For a pool each figure is the sum
// over its heaps, so live_peak is an upper bound when several threads allocate.
struct MemoryStats {
  Bytes live;
  Bytes live_peak;
  Bytes reserved;
  Bytes reserved_peak;
  Bytes awaiting;  // of live: given back, and other streams than their own still use it
  std::uint64_t blocks_live = 0;
  std::uint64_t allocations = 0;    // ever
  std::uint64_t foreign_frees = 0;  // frees by a thread that did not own the heap
  std::uint64_t source_calls = 0;   // reserve, commit, decommit and release together
  std::uint32_t heaps = 0;
};

}  // namespace ebb::inline v0
