// SPDX-License-Identifier: Apache-2.0
// Two threads that do something at the same moment, many times over. For the tests of gc.
#pragma once

#include "support/test_settings.h"

#include <atomic>
#include <thread>

namespace ebb::test {

// EBB_STRESS says how often.
inline int rounds() {
  return static_cast<int>(stress(2000));
}

// Threads that meet before each round.
class Meeting {
 public:
  explicit Meeting(int threads = 2) : threads_(threads) {}

  void meet() {
    const int target = (arrived_.fetch_add(1) / threads_ + 1) * threads_;
    while (arrived_.load() < target) {
      std::this_thread::yield();
    }
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0};
};

// Runs here on this thread and there on another at the same moment, many times over. before sets a
// round up, and after looks at what came of it; both run on this thread, alone.
template <class Before, class Here, class There, class After>
void race(Before before, Here here, There there, After after) {
  const int count = rounds();
  Meeting start;
  Meeting end;
  const std::jthread other([&] {
    for (int i = 0; i < count; ++i) {
      start.meet();
      there(i);
      end.meet();
    }
  });
  for (int i = 0; i < count; ++i) {
    before(i);
    start.meet();
    here(i);
    end.meet();
    after(i);
  }
}

}  // namespace ebb::test
