// SPDX-License-Identifier: Apache-2.0
// An element that counts itself and can throw when it is made. For tests on one thread at a time.
#pragma once

#include <ebb/gc/elements.h>

#include <atomic>
#include <stdexcept>

namespace ebb::test {

struct Tracked {
  static inline std::atomic<long> live{0};
  static inline long throw_in = 0;  // the n-th construction from now throws; 0: none

  int value = 1;

  Tracked() { born(); }
  Tracked(const Tracked& other) : value(other.value) { born(); }
  Tracked& operator=(const Tracked& other) = default;
  ~Tracked() {
    value = -1;
    --live;
  }

 private:
  static void born() {
    if (throw_in > 0 && --throw_in == 0) {
      throw std::runtime_error("thrown by the test");
    }
    ++live;
  }
};

inline constexpr const ElementOps& tracked_ops = element_ops<Tracked>;

}  // namespace ebb::test
