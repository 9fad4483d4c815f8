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

  // Compares and exchanges instead of adding first: a request that is too large must not make
  // another one that fits look so too.
  bool take(std::size_t bytes) noexcept {
    std::size_t before = reserved_.load(std::memory_order_relaxed);
    do {
      if (!fits(bytes, before)) {
        return false;
      }
    } while (!reserved_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    return true;
  }
  // Whether take would succeed now.
  bool has_room(std::size_t bytes) const noexcept {
    return fits(bytes, reserved_.load(std::memory_order_relaxed));
  }
  void give(std::size_t bytes) noexcept { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::size_t limit() const noexcept { return limit_; }

 private:
  bool fits(std::size_t bytes, std::size_t reserved) const noexcept {
    return limit_ == 0 || (reserved <= limit_ && bytes <= limit_ - reserved);
  }

  std::size_t limit_;
  std::atomic<std::size_t> reserved_{0};
};

}  // namespace ebb::inline v0::detail
