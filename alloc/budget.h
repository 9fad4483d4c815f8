// SPDX-License-Identifier: Apache-2.0
// The reserved bytes of all heaps of a pool, against its limit. Used by heaps when they grow.
// Any thread.
#pragma once

#include <atomic>
#include <cstddef>

namespace ebb::inline v0::detail {

// Relaxed throughout: the number guards no other data.
class Budget {
 public:
  // limit 0 means none.
  explicit Budget(std::size_t limit) noexcept : limit_(limit) {}

  bool take(std::size_t bytes) noexcept {
    const std::size_t before = reserved_.fetch_add(bytes, std::memory_order_relaxed);
    if (limit_ != 0 && (before > limit_ || bytes > limit_ - before)) {
      reserved_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    return true;
  }
  void give(std::size_t bytes) noexcept { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::size_t limit() const noexcept { return limit_; }

 private:
  std::size_t limit_;
  std::atomic<std::size_t> reserved_{0};
};

}  // namespace ebb::inline v0::detail
