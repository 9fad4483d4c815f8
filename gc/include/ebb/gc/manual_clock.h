// SPDX-License-Identifier: Apache-2.0
// A clock that moves only when a test says so, for everything that has a deadline: closes, loaders,
// progress bars. Thread-safe: one thread may wait by it while another moves it.
#pragma once

#include <ebb/gc/clock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace ebb::inline v0 {

// Give it to RuntimeOptions::clock. Must outlive the runtime.
class ManualClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return TimePoint(TimePoint::duration(ticks_.load())); }
  void advance(TimePoint::duration by) noexcept { ticks_ += by.count(); }

  // Returns after a real millisecond at the latest, since whoever moves the time cannot notify
  // changed, and what the caller waits for may have come meanwhile.
  void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                  TimePoint until) override {
    ++waits_;
    if (now() < until) {
      changed.wait_for(lock, std::chrono::milliseconds(1));
    }
  }
  // Returns how often wait_until was called: a test moves the clock once somebody waits by it.
  unsigned waits() const noexcept { return waits_.load(); }

 private:
  // Not 0: a time point of 0 is what an uninitialised one would hold.
  std::atomic<TimePoint::rep> ticks_{TimePoint::duration(std::chrono::hours(1)).count()};
  std::atomic<unsigned> waits_{0};
};

}  // namespace ebb::inline v0
