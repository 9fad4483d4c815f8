// SPDX-License-Identifier: Apache-2.0
// What can be queued on a stream, as values. For ebb's modules only: not installed. Any thread.
#pragma once

#include <ebb/alloc/bytes.h>

#include <cstddef>
#include <cstdint>

namespace ebb::inline v0 {

// Captured work that can be launched as a whole. Numbered as events are.
struct GraphExec {
  std::uint64_t id = 0;
  std::uint64_t beside = 0;  // the lanes of other streams that it has to do with, as bits

  constexpr bool operator==(const GraphExec& other) const { return id == other.id; }
};

// What a fill repeats: the low width bytes of bits.
struct FillPattern {
  std::uint64_t bits = 0;
  std::size_t width = 1;  // 1, 2, 4 or 8
};

// Rows of a copy between memory in which rows lie further apart than they are long. In bytes.
struct CopyRows {
  Bytes width;  // of a row
  std::size_t rows = 0;
  std::size_t to_pitch = 0;  // from one row to the next; at least width
  std::size_t from_pitch = 0;
};

}  // namespace ebb::inline v0
