// SPDX-License-Identifier: Apache-2.0
// Checks at three levels: a caller's mistake throws, always; our own mistakes abort at checks=basic
// and above; whole structures are walked at checks=full. For ebb's sources only: not installed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#ifndef EBB_CHECKS
#define EBB_CHECKS 1
#endif

namespace ebb::inline v0::detail {

template <class... Parts>
[[noreturn]] void require_failed(const char* function, const Parts&... parts) {
  std::string text = std::string("[") + function + "] ";
  ((text += parts), ...);
  throw std::invalid_argument(text);
}

[[noreturn]] inline void assert_failed(const char* file, int line, const char* what) noexcept {
  std::fprintf(stderr, "ebb: internal check failed at %s:%d: %s\n", file, line, what);
  std::abort();
}

}  // namespace ebb::inline v0::detail

// Throws std::invalid_argument "[function] message" unless cond holds. The message is one or more
// strings, joined.
#define EBB_REQUIRE(cond, function, ...)                      \
  do {                                                        \
    if (!(cond)) [[unlikely]] {                               \
      ::ebb::detail::require_failed((function), __VA_ARGS__); \
    }                                                         \
  } while (false)

// The operand of sizeof is not evaluated, but keeps variables used.
#define EBB_CHECK_OFF(cond) static_cast<void>(sizeof(!(cond)))

#define EBB_CHECK_ON(cond)                                     \
  do {                                                         \
    if (!(cond)) [[unlikely]] {                                \
      ::ebb::detail::assert_failed(__FILE__, __LINE__, #cond); \
    }                                                          \
  } while (false)

#if EBB_CHECKS >= 1
#define EBB_ASSERT(cond) EBB_CHECK_ON(cond)
#else
#define EBB_ASSERT(cond) EBB_CHECK_OFF(cond)
#endif

#if EBB_CHECKS >= 2
#define EBB_ASSERT_VALID(x) EBB_CHECK_ON((x).is_valid())
#else
#define EBB_ASSERT_VALID(x) EBB_CHECK_OFF((x).is_valid())
#endif
