// SPDX-License-Identifier: Apache-2.0
// How many lines a loop may write about stragglers, so that a loop that goes wrong in many places
// does not drown the host's log. Private to gc. Guarded by whoever owns it. [gc.report]
#pragma once

#include <ebb/gc/clock.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace ebb::inline v0::detail {

// Ten at once, then one a second; the others are counted.
class LogLimit {
 public:
  explicit LogLimit(TimePoint now) noexcept : refilled_(now) {}

  // Returns whether a line may be written now.
  bool allows(TimePoint now) noexcept {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - refilled_);
    refilled_ += seconds;
    room_ = static_cast<std::uint64_t>(
        std::min<std::int64_t>(static_cast<std::int64_t>(room_) + seconds.count(), burst));
    if (room_ == 0) {
      ++left_out_;
      return false;
    }
    --room_;
    return true;
  }
  // Returns how many lines were not allowed since this was asked last.
  std::uint64_t take_left_out() noexcept { return std::exchange(left_out_, 0); }

 private:
  static constexpr std::int64_t burst = 10;

  TimePoint refilled_;
  std::uint64_t room_ = burst;
  std::uint64_t left_out_ = 0;
};

}  // namespace ebb::inline v0::detail
