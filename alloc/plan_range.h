// SPDX-License-Identifier: Apache-2.0
// The range of a heap in which its outermost replay follows plans. Used by the heap's owner.
#pragma once

#include "record.h"

#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

struct PlanRange {
  HeapRecord* record = nullptr;  // while set aside
  std::byte* begin = nullptr;    // where it is, or was last
  Stream stream;                 // whose work comes after all that was done in it
  bool in_use = false;
  bool is_wanted = false;           // goes back once it is not in use any more
  std::uint32_t held_off = 0;       // iterations that are to go without: there is no room
  std::uint32_t held_off_next = 1;  // how many the next time
};

}  // namespace ebb::inline v0::detail
