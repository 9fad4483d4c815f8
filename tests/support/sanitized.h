// SPDX-License-Identifier: Apache-2.0
// Whether a sanitizer is built in that replaces malloc, reserves terabytes of addresses and catches
// signals: what it falsifies is left out then. EBB_TEST_SANITIZED is defined or not.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EBB_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define EBB_TEST_SANITIZED 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define EBB_TEST_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EBB_TEST_THREAD_SANITIZED 1
#endif
#endif

namespace ebb::test {

constexpr bool is_sanitized() {
#ifdef EBB_TEST_SANITIZED
  return true;
#else
  return false;
#endif
}

// Threads of a machine that is left behind are told as leaked.
constexpr bool is_thread_sanitized() {
#ifdef EBB_TEST_THREAD_SANITIZED
  return true;
#else
  return false;
#endif
}

}  // namespace ebb::test
