// SPDX-License-Identifier: Apache-2.0
// Something that happens a moment after a test begins to wait for it. Used by tests of waits.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace ebb::test {

// Calls function on a thread of its own after a short while; joined at the end.
class Later {
 public:
  explicit Later(std::function<void()> function,
                 std::chrono::milliseconds wait = std::chrono::milliseconds(20))
      : thread_([function = std::move(function), wait] {
          std::this_thread::sleep_for(wait);
          function();
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace ebb::test
