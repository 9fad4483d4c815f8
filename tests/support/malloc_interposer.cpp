// SPDX-License-Identifier: Apache-2.0
// The C allocation functions, replaced by counting forwarders to glibc's own (which operator new
// and delete end up in). Linked whole into a test program. Any thread.
#include "support/malloc_interposer.h"

#include "support/sanitized.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace ebb::test {

namespace {

// Constant initialisation and no destructors: the first calls come before and the last after main.
std::atomic<std::uint64_t> all_allocations{0};
std::atomic<std::uint64_t> all_frees{0};
thread_local constinit HeapCalls mine;

[[maybe_unused]] void count_allocation() noexcept {
  all_allocations.fetch_add(1, std::memory_order_relaxed);
  ++mine.allocations;
}
[[maybe_unused]] void count_free() noexcept {
  all_frees.fetch_add(1, std::memory_order_relaxed);
  ++mine.frees;
}

}  // namespace

HeapCalls heap_calls_of_this_thread() noexcept {
  return mine;
}

HeapCalls heap_calls() noexcept {
  return {all_allocations.load(std::memory_order_relaxed),
          all_frees.load(std::memory_order_relaxed)};
}

bool heap_calls_counted() noexcept {
  return !is_sanitized();
}

}  // namespace ebb::test

#ifndef EBB_TEST_SANITIZED

using ebb::test::count_allocation;
using ebb::test::count_free;

// glibc exports its allocator under these names for exactly this use.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);

void* malloc(std::size_t bytes) {
  count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  count_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count_allocation();
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count_allocation();
  void* got = __libc_memalign(alignment, bytes);
  if (got == nullptr) {
    return ENOMEM;
  }
  *memory = got;
  return 0;
}
void free(void* memory) {
  if (memory != nullptr) {
    count_free();
  }
  __libc_free(memory);
}
}

#endif
