// SPDX-License-Identifier: Apache-2.0
// What a close counts of its stragglers. Private to gc. A value.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/place.h>

#include <cstdint>

namespace ebb::inline v0::detail {

// How much of one place is alive: what a close needs to know before it makes a report.
struct Tally {
  Place place;
  std::uint64_t count = 0;
  Bytes bytes;
};

}  // namespace ebb::inline v0::detail
