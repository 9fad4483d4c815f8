// SPDX-License-Identifier: Apache-2.0
// Uses of memory on streams that nobody has declared, each pair of places told once. Part of a
// domain, at checks=full. Any thread: one lock. [alloc.cuda]
#pragma once

#include <ebb/alloc/place.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace ebb::inline v0::detail {

class UndeclaredUses {
 public:
  // Counts one of what was made at a place and used at another. Returns whether it is to be told:
  // the first of the two places, while they are few.
  bool note(const Place& made, const Place& used);
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t told_most = 64;

  std::atomic<std::uint64_t> count_{0};  // relaxed: a figure
  std::mutex mutex_;                     // guards told_
  std::vector<std::pair<Place, Place>> told_;
};

}  // namespace ebb::inline v0::detail
