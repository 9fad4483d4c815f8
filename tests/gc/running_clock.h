// SPDX-License-Identifier: Apache-2.0
// A fake clock that runs by itself while this lives, so that deadlines come quickly.
#pragma once

#include <ebb/gc/manual_clock.h>

#include <chrono>
#include <stop_token>
#include <thread>

namespace ebb::test {

// Runs the clock on, 50 ms at a time.
class RunningClock {
 public:
  explicit RunningClock(ManualClock& clock)
      : thread_([&clock](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            clock.advance(std::chrono::milliseconds(50));
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace ebb::test
