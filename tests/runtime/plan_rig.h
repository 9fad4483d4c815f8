// SPDX-License-Identifier: Apache-2.0
// Runtimes, iterations and their bodies for tests of loops that follow plans. One thread.
#pragma once

#include "support/executor_choice.h"

#include <ebb/runtime/loop.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace ebb::test {

inline RuntimeOptions quiet(unsigned threads = 2) {
  RuntimeOptions options;
  options.threads = threads;
  options.log = [](LogLevel, std::string_view) {};
  options.executor = executor_choice();
  return options;
}

using Body = std::function<void(Iteration&)>;

inline void run(Loop& loop, int iterations, const Body& body, Place at = Place::here()) {
  for (int i = 0; i < iterations; ++i) {
    Iteration it(loop, at);
    body(it);
  }
}

// A few temporaries, each checked before it goes.
inline void step(Iteration& it) {
  std::vector<Tensor> alive;
  for (int i = 0; i < 6; ++i) {
    alive.push_back(full(it, {100 * (i + 1)}, i));
    if (i >= 2) {
      CHECK(alive[static_cast<std::size_t>(i) - 2].data<const float>()[99] ==
            static_cast<float>(i - 2));
      alive[static_cast<std::size_t>(i) - 2] = Tensor();
    }
  }
}

// Six tensors, each made while the one before lives and checked before it goes.
inline void chain(Iteration& it, std::int64_t size = 100,
                  const std::function<void()>& after_first = {}) {
  Tensor before = full(it, {size}, 0);
  if (after_first) {
    after_first();
  }
  for (int i = 1; i < 6; ++i) {
    Tensor next = full(it, {size * i}, i);
    CHECK(before.data<const float>()[0] == static_cast<float>(i - 1));
    before = std::move(next);
  }
}
inline void run_chains(Loop& loop, int iterations, Place at) {
  run(
      loop, iterations, [](Iteration& it) { chain(it); }, at);
}

}  // namespace ebb::test
