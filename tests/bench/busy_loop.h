// SPDX-License-Identifier: Apache-2.0
// A loop that is at work on a thread of its own, for measuring what others feel of it.
#pragma once

#include "handoff.h"

#include <ebb/runtime/loop.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>

namespace ebb::bench {

// From construction to destruction: one open iteration that holds tensors and keeps making and
// dropping them. rt must outlive it.
class BusyLoop {
 public:
  explicit BusyLoop(ebb::Runtime& rt)
      : thread_([this, &rt](const std::stop_token& stop) { work(rt, stop); }) {
    spin_until([this] { return at_work_.load(std::memory_order_relaxed); });
  }

 private:
  void work(ebb::Runtime& rt, const std::stop_token& stop) {
    ebb::Loop loop(rt, {.name = "busy"});
    ebb::Iteration it(loop);
    std::array<ebb::Tensor, 64> held;
    for (std::size_t i = 0; !stop.stop_requested(); ++i) {
      held[i % held.size()] = ebb::empty({16, 16});
      if (i == held.size()) {
        at_work_.store(true, std::memory_order_relaxed);
      }
    }
  }

  // Relaxed: nothing else is passed on.
  std::atomic<bool> at_work_{false};
  std::jthread thread_;  // last: it uses the above
};

}  // namespace ebb::bench
