// SPDX-License-Identifier: Apache-2.0
// What a supervised pointer does not do inline: complaining, and counting its slow form. Any
// thread.
#include <ebb/alloc/callable_ptr.h>
#include <ebb/alloc/data_ptr.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace ebb::inline v0 {

namespace {

// Relaxed: a figure.
constinit std::atomic<std::uint64_t> slow_callables{0};

}  // namespace

void detail::used_after_move(const char* function) noexcept {
  std::fprintf(stderr, "ebb: [%s] the pointer was moved from\n", function);
  std::abort();
}

void detail::count_slow_callable_ptr() noexcept {
  slow_callables.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t slow_callable_ptrs() noexcept {
  return slow_callables.load(std::memory_order_relaxed);
}

}  // namespace ebb::inline v0
