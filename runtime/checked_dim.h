// SPDX-License-Identifier: Apache-2.0
// How dimensions are named by number: negative ones count from the end. Used by tensors and their
// views. Any thread.
#pragma once

#include <ebb/alloc/check.h>

#include <cstddef>
#include <string>

namespace ebb::inline v0::detail {

// Returns dim as an index below dims. Throws std::invalid_argument when there is no such one.
inline std::size_t checked_dim(int dim, int dims, const char* function) {
  EBB_REQUIRE(dim >= -dims && dim < dims, function, "there is no dimension ", std::to_string(dim),
              " among ", std::to_string(dims));
  return static_cast<std::size_t>(dim < 0 ? dim + dims : dim);
}

}  // namespace ebb::inline v0::detail
