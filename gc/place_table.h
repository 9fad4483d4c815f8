// SPDX-License-Identifier: Apache-2.0
// Structs by their place, found by hashing: a close with stragglers of ten thousand places costs in
// proportion. Private to gc. Guarded by whoever owns it. [gc.report]
#pragma once

#include <ebb/gc/place.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace ebb::inline v0::detail {

// Entry has a member place, by which it is found. Memory is kept by clear() and erase_if(), so that
// what is the same each time makes no heap call.
template <class Entry>
class PlaceTable {
 public:
  // Returns the entry of place, or null. It moves when one is added.
  Entry* find(const Place& place) noexcept {
    // What is made in a row is mostly made at one line.
    if (last_ < entries_.size() && entries_[last_].place.is_same_as(place)) {
      return &entries_[last_];
    }
    for (std::size_t at = first_slot(place); !slots_.empty(); at = next_slot(at)) {
      if (slots_[at] == none) {
        break;
      }
      if (entries_[slots_[at]].place.is_same_as(place)) {
        last_ = slots_[at];
        return &entries_[last_];
      }
    }
    return nullptr;
  }
  // Returns the entry of place; adds what make() returns when there is none. Throws std::bad_alloc.
  template <class Make>
  Entry& find_or_add(const Place& place, Make make) {
    if (Entry* const found = find(place)) {
      return *found;
    }
    if (2 * (entries_.size() + 1) > slots_.size()) {
      slots_.resize(std::max<std::size_t>(2 * slots_.size(), 16));
      index_all();
    }
    entries_.push_back(make());
    last_ = entries_.size() - 1;
    index(last_);
    return entries_.back();
  }
  template <class Predicate>
  void erase_if(Predicate predicate) {
    if (std::erase_if(entries_, predicate) != 0) {
      index_all();
    }
  }
  void clear() noexcept {
    entries_.clear();
    index_all();
  }
  // Returns all entries, in the order of their adding, and leaves none.
  std::vector<Entry> take() noexcept {
    std::vector<Entry> taken = std::exchange(entries_, {});
    index_all();
    return taken;
  }

  bool empty() const noexcept { return entries_.empty(); }
  auto begin() noexcept { return entries_.begin(); }
  auto end() noexcept { return entries_.end(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // The number of slots is a power of two, and at least half of them are none.
  std::size_t first_slot(const Place& place) const noexcept {
    constexpr std::size_t line_factor = 0x9e3779b97f4a7c15;
    const std::size_t hash =
        std::hash<std::string_view>{}(place.file) ^ std::size_t{place.line} * line_factor;
    return (hash ^ hash >> 32) & (slots_.size() - 1);
  }
  std::size_t next_slot(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }
  void index(std::size_t number) noexcept {
    std::size_t at = first_slot(entries_[number].place);
    while (slots_[at] != none) {
      at = next_slot(at);
    }
    slots_[at] = static_cast<std::uint32_t>(number);
  }
  void index_all() noexcept {
    std::fill(slots_.begin(), slots_.end(), none);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      index(i);
    }
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // numbers of entries, or none
  std::size_t last_ = 0;              // the one found last
};

}  // namespace ebb::inline v0::detail
