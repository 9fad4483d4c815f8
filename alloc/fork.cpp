// SPDX-License-Identifier: Apache-2.0
// The fork hook: counts the forks that led to this process. [rt.fork] [rt.global]
#include "poison.h"

#include <ebb/alloc/error.h>
#include <ebb/alloc/fork.h>

#include <new>
#include <string>

#include <pthread.h>

namespace ebb::inline v0::detail {

constinit std::atomic<std::uint32_t> forks{0};

namespace {

void count_fork() noexcept {
  forks.fetch_add(1, std::memory_order_relaxed);
}

void install_fork_hook() {
  static const int refused = ::pthread_atfork(nullptr, nullptr, count_fork);
  if (refused != 0) {
    throw std::bad_alloc();
  }
}

}  // namespace

ForkMark::ForkMark() {
  install_fork_hook();  // first, so that a fork that comes between is counted
  forks_ = forks.load(std::memory_order_relaxed);
}

void throw_forked(const char* function) {
  throw ForkedError("[" + std::string(function) +
                    "] this process was forked from the one that made the runtime, whose threads "
                    "and locks are not here: make a Runtime of its own in the child");
}

void leave_behind(const void* object) noexcept {
  if (object != nullptr) {
    ignore_leak(object);
  }
}

}  // namespace ebb::inline v0::detail
