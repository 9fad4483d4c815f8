// SPDX-License-Identifier: Apache-2.0
// Tells AddressSanitizer which bytes are handed out, and LeakSanitizer where pointers may hide.
// Used by heaps. Costs nothing in other builds.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define EBB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EBB_ASAN 1
#endif
#endif

#ifdef EBB_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif

namespace ebb::inline v0::detail {

#ifdef EBB_ASAN
inline constexpr bool poisons = true;
inline void poison(const void* begin, std::size_t bytes) noexcept {
  __asan_poison_memory_region(begin, bytes);
}
inline void unpoison(const void* begin, std::size_t bytes) noexcept {
  __asan_unpoison_memory_region(begin, bytes);
}
inline void add_root(const void* begin, std::size_t bytes) noexcept {
  if (bytes != 0) {
    __lsan_register_root_region(begin, bytes);
  }
}
inline void remove_root(const void* begin, std::size_t bytes) noexcept {
  if (bytes != 0) {
    __lsan_unregister_root_region(begin, bytes);
  }
}
inline void ignore_leak(const void* object) noexcept {
  __lsan_ignore_object(object);
}
#else
inline constexpr bool poisons = false;
inline void poison(const void* /*begin*/, std::size_t /*bytes*/) noexcept {}
inline void unpoison(const void* /*begin*/, std::size_t /*bytes*/) noexcept {}
inline void add_root(const void* /*begin*/, std::size_t /*bytes*/) noexcept {}
inline void remove_root(const void* /*begin*/, std::size_t /*bytes*/) noexcept {}
inline void ignore_leak(const void* /*object*/) noexcept {}
#endif

}  // namespace ebb::inline v0::detail
