// SPDX-License-Identifier: Apache-2.0
// Type-stable objects T, linked by T::next while spare; memory of one T only ever holds a T.
// Used by a heap for records and slabs, by the heap's owner.
#pragma once

#include "meta_chunks.h"

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace ebb::inline v0::detail {

template <class T>
class TypedPool {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit TypedPool(MetaChunks& chunks) noexcept : chunks_(chunks) {}

  // Makes sure that the next count calls of take succeed; false when the system refuses memory.
  bool ensure(std::size_t count) noexcept { return has(count) || grow(count); }
  // Whether they would succeed as it is.
  bool has(std::size_t count) const noexcept { return available_ >= count; }

  // After ensure only.
  T* take() noexcept {
    --available_;
    if (spare_ != nullptr) {
      T* object = spare_;
      spare_ = object->next;
      return object;
    }
    return new (std::exchange(fresh_, fresh_ + sizeof(T))) T;
  }

  void give(T* object) noexcept {
    object->next = spare_;
    spare_ = object;
    ++available_;
  }

  // Sets one object aside for whoever must not fail later, after ensure; unhold makes it one that
  // take may have.
  void hold() noexcept { --available_; }
  void unhold() noexcept { ++available_; }

  // How many objects are out, or held.
  std::size_t taken() const noexcept { return made_ - available_; }

 private:
  bool grow(std::size_t count) noexcept {
    const Range range = chunks_.add();
    if (!range) {
      return false;
    }
    const std::size_t fits = range.bytes.count() / sizeof(T);
    while (fresh_end_ - fresh_ >= static_cast<std::ptrdiff_t>(sizeof(T))) {
      give(new (std::exchange(fresh_, fresh_ + sizeof(T))) T);
      --available_;  // was counted while fresh
    }
    fresh_ = range.begin;
    fresh_end_ = fresh_ + fits * sizeof(T);
    available_ += fits;
    made_ += fits;
    return available_ >= count;
  }

  MetaChunks& chunks_;
  T* spare_ = nullptr;
  std::byte* fresh_ = nullptr;  // not yet constructed
  std::byte* fresh_end_ = nullptr;
  std::size_t available_ = 0;
  std::size_t made_ = 0;
};

}  // namespace ebb::inline v0::detail
