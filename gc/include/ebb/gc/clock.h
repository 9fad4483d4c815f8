// SPDX-License-Identifier: Apache-2.0
// The clock behind every deadline, so that a test can bring its own. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace ebb::inline v0 {

using TimePoint = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

// A deadline that never comes. Waits with it report every few seconds. [gc.policy]
inline constexpr Milliseconds forever = Milliseconds::max();

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  Clock(Clock&&) = delete;
  Clock& operator=(Clock&&) = delete;
  virtual ~Clock() = default;

  virtual TimePoint now() const noexcept = 0;
  // Waits until changed is notified or until has come, whichever is first; may wake early.
  // lock is held before and after.
  virtual void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                          TimePoint until) = 0;
};

// Returns the clock of the machine: std::chrono::steady_clock. It has no state.
Clock& steady_clock() noexcept;

// Returns now + wait, or TimePoint::max() when wait is forever.
TimePoint deadline_after(const Clock& clock, Milliseconds wait) noexcept;

}  // namespace ebb::inline v0
