// SPDX-License-Identifier: Apache-2.0
// Counting before the upstream is asked, so that the limit holds among threads. Any thread.
#include "layer.h"

#include <ebb/alloc/limit.h>

#include <algorithm>
#include <limits>

namespace ebb::inline v0 {

bool Limit::take(std::size_t bytes) noexcept {
  const std::size_t limit = limit_.load(std::memory_order_relaxed);
  const std::size_t most = limit != 0 ? limit : std::numeric_limits<std::size_t>::max();
  std::size_t live = live_.load(std::memory_order_relaxed);
  do {
    if (live > most || bytes > most - live) {
      return false;
    }
  } while (!live_.compare_exchange_weak(live, live + bytes, std::memory_order_relaxed));
  return true;
}

Block Limit::try_allocate(Bytes bytes, Align align, Stream stream) noexcept {
  if (!take(bytes.count())) {
    return {};
  }
  const Block block = upstream_.try_allocate(bytes, align, stream);
  if (!block) {
    live_.fetch_sub(bytes.count(), std::memory_order_relaxed);
    return {};
  }
  return detail::take_over(block, *this);
}

void Limit::deallocate(const Block& block) noexcept {
  EBB_ASSERT(detail::is_from(block, *this));  // else freed twice, or another's
  const std::size_t bytes = block.bytes.count();
  detail::hand_down(block, upstream_);
  // After: whoever sees the room must find the memory too.
  live_.fetch_sub(bytes, std::memory_order_relaxed);
}

// The figures are this limit's when it is what stands in the way, else the upstream's.
OutOfMemoryInfo Limit::explain(Bytes asked) const {
  OutOfMemoryInfo info = detail::explain_through(*this, upstream_, asked);
  const std::size_t most = limit().count();
  const std::size_t now = live().count();
  const std::size_t room = most - std::min(most, now);
  if (most != 0 && asked.count() > room) {
    info.limit = Bytes{most};
    info.live = Bytes{now};
    info.largest_hole = Bytes{std::min(room, info.largest_hole.count())};
  }
  return info;
}

}  // namespace ebb::inline v0
