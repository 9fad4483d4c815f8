// SPDX-License-Identifier: Apache-2.0
// The machine's clock.
#include <ebb/gc/clock.h>

namespace ebb::inline v0 {
namespace {

class SteadyClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
  void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                  TimePoint until) override {
    changed.wait_until(lock, until);
  }
};

}  // namespace

Clock& steady_clock() noexcept {
  static SteadyClock clock;
  return clock;
}

TimePoint deadline_after(const Clock& clock, Milliseconds wait) noexcept {
  const TimePoint now = clock.now();
  const bool endless = wait > std::chrono::duration_cast<Milliseconds>(TimePoint::max() - now);
  return endless ? TimePoint::max() : now + wait;
}

}  // namespace ebb::inline v0
