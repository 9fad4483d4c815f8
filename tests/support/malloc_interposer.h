// SPDX-License-Identifier: Apache-2.0
// Counts heap calls of this program, on the calling thread and in all. Used by tests and benchmarks
// that promise none; a program gets the counting by linking malloc_interposer.cpp. Any thread.
#pragma once

#include <cstdint>

namespace ebb::test {

struct HeapCalls {
  std::uint64_t allocations = 0;  // malloc, calloc, realloc, aligned_alloc, posix_memalign, new
  std::uint64_t frees = 0;        // free and delete, of something
};

// False in sanitizer builds, whose own interposers ours would break: counts are then zero.
bool heap_calls_counted() noexcept;
HeapCalls heap_calls_of_this_thread() noexcept;
HeapCalls heap_calls() noexcept;

}  // namespace ebb::test
