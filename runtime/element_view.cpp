// SPDX-License-Identifier: Apache-2.0
// The error of an index out of bounds, out of line so that loops over views stay small.
#include <ebb/alloc/check.h>
#include <ebb/runtime/element_view.h>

#include <string>

namespace ebb::inline v0::detail {

void view_index_failed(std::size_t dim, std::int64_t index, std::int64_t size) {
  require_failed("ElementView", "the index ", std::to_string(index), " of dimension ",
                 std::to_string(dim), " is outside its size ", std::to_string(size));
}

}  // namespace ebb::inline v0::detail
