// SPDX-License-Identifier: Apache-2.0
// A hash map from addresses to pointers, without a heap call while it does not grow. Used where
// memory comes back as a bare address. Not thread-safe: its user locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace ebb::inline v0 {

// Open addressing with linear probing, at most three quarters full; it only grows. Keys and values
// are not owned, and null is neither.
//
//   ebb::AddressMap<Block> map;
//   if (map.make_room()) map.insert(address, &block);
//   Block* found = map.take(address);                  // null when there is none
template <class T>
class AddressMap {
 public:
  AddressMap() = default;
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;
  AddressMap(AddressMap&&) = delete;
  AddressMap& operator=(AddressMap&&) = delete;
  ~AddressMap() = default;

  // Makes sure that the next insert finds room. Returns false when the system refuses memory.
  [[nodiscard]] bool make_room() noexcept {
    if ((size_ + 1) * 4 <= capacity_ * 3) {
      return true;
    }
    return grow(capacity_ == 0 ? capacity_min : capacity_ * 2);
  }

  // Maps key to value. Room was made, and key is not in the map.
  void insert(const void* key, T* value) noexcept {
    std::size_t i = home(key);
    while (entries_[i].key != nullptr) {
      i = next(i);
    }
    entries_[i] = {key, value};
    ++size_;
  }

  // Returns what key is mapped to, else null.
  T* find(const void* key) const noexcept {
    const std::size_t i = index_of(key);
    return i != none ? entries_[i].value : nullptr;
  }

  // As find, and key is no longer mapped.
  T* take(const void* key) noexcept {
    const std::size_t i = index_of(key);
    if (i == none) {
      return nullptr;
    }
    T* value = entries_[i].value;
    close_gap(i);
    --size_;
    return value;
  }

  // Calls visit(key, value) for every entry, in no order. visit must not change the map.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < capacity_; ++i) {
      if (entries_[i].key != nullptr) {
        visit(entries_[i].key, entries_[i].value);
      }
    }
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  struct Entry {
    const void* key = nullptr;
    T* value = nullptr;
  };

  static constexpr std::size_t capacity_min = 64;  // a power of two, as all capacities
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // Addresses differ in their middle bits: multiply, and use the high half.
  std::size_t home(const void* key) const noexcept {
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(key));
    return static_cast<std::size_t>((address * 0x9e3779b97f4a7c15U) >> 32U) & (capacity_ - 1);
  }
  std::size_t next(std::size_t i) const noexcept { return (i + 1) & (capacity_ - 1); }

  std::size_t index_of(const void* key) const noexcept {
    if (size_ == 0 || key == nullptr) {
      return none;
    }
    for (std::size_t i = home(key); entries_[i].key != nullptr; i = next(i)) {
      if (entries_[i].key == key) {
        return i;
      }
    }
    return none;
  }

  // Moves later entries of the run up, so that none is cut off from its home.
  void close_gap(std::size_t gap) noexcept {
    for (std::size_t i = next(gap); entries_[i].key != nullptr; i = next(i)) {
      const std::size_t to_gap = (i - gap) & (capacity_ - 1);
      const std::size_t to_home = (i - home(entries_[i].key)) & (capacity_ - 1);
      if (to_home >= to_gap) {
        entries_[gap] = entries_[i];
        gap = i;
      }
    }
    entries_[gap] = {};
  }

  bool grow(std::size_t capacity) noexcept {
    std::unique_ptr<Entry[]> fresh(new (std::nothrow) Entry[capacity]);
    if (fresh == nullptr) {
      return false;
    }
    const std::unique_ptr<Entry[]> old = std::exchange(entries_, std::move(fresh));
    const std::size_t old_capacity = std::exchange(capacity_, capacity);
    size_ = 0;
    for (std::size_t i = 0; i < old_capacity; ++i) {
      if (old[i].key != nullptr) {
        insert(old[i].key, old[i].value);
      }
    }
    return true;
  }

  std::unique_ptr<Entry[]> entries_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace ebb::inline v0
