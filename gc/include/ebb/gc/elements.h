// SPDX-License-Identifier: Apache-2.0
// How elements that are more than bytes are made, copied and destroyed: one static table per type.
// Used by storages of strings and the like. Values: any thread.
#pragma once

#include <ebb/alloc/bytes.h>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace ebb::inline v0 {

// The operations of one element type. Each works on n elements in a row; what throws half way has
// destroyed what it made. The table must outlive every storage of such elements.
struct ElementOps {
  Bytes size;
  Align align;
  const char* name;
  void (*construct)(void* first, std::size_t n);
  void (*copy)(void* to, const void* from, std::size_t n);  // constructs at to
  void (*destroy)(void* first, std::size_t n) noexcept;
};

namespace detail {

template <class T>
void construct_elements(void* first, std::size_t n) {
  std::uninitialized_value_construct_n(static_cast<T*>(first), n);
}
template <class T>
void copy_elements(void* to, const void* from, std::size_t n) {
  std::uninitialized_copy_n(static_cast<const T*>(from), n, static_cast<T*>(to));
}
template <class T>
void destroy_elements(void* first, std::size_t n) noexcept {
  std::destroy_n(static_cast<T*>(first), n);
}

}  // namespace detail

// The table of T: value construction, copy construction, destruction.
template <class T>
inline constexpr ElementOps element_ops{
    Bytes{sizeof(T)},         Align{alignof(T)},          "elements", detail::construct_elements<T>,
    detail::copy_elements<T>, detail::destroy_elements<T>};

}  // namespace ebb::inline v0
