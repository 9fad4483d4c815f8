// SPDX-License-Identifier: Apache-2.0
// The budget among threads: what fits is never refused for the sake of what does not. [alloc.heap]
#include "budget.h"

#include "alloc/heap_fixture.h"

#include <doctest/doctest.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

using ebb::detail::Budget;

TEST_CASE("budget: a request that fits is not refused beside larger ones") {
  Budget budget(100);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> granted{0};
  std::vector<std::jthread> greedy;
  for (int i = 0; i < 2; ++i) {
    greedy.emplace_back([&] {
      while (!done) {
        granted += budget.take(101) ? 1u : 0u;
      }
    });
  }
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < ebb::test::stress(20000) * 100; ++i) {
    if (budget.take(100)) {
      budget.give(100);
    } else {
      ++refused;
    }
  }
  done = true;
  greedy.clear();
  CHECK(refused == 0);
  CHECK(granted == 0);
}

TEST_CASE("budget: sums at the end of the range do not wrap") {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  Budget budget(most);
  CHECK(budget.take(most - 1));
  CHECK_FALSE(budget.has_room(2));
  CHECK_FALSE(budget.take(most));
  CHECK(budget.take(1));
  CHECK_FALSE(budget.take(1));
}
