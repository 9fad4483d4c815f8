// SPDX-License-Identifier: Apache-2.0
// Which entry of a vector has a place, so that a close with thousands of them does not compare each
// with each. Private to gc; belongs, as a value, to whoever owns the vector.
#pragma once

#include <ebb/alloc/place.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace ebb::inline v0::detail {

// Entries are structs with a place, which differ. No heap call where there were as many before.
class PlaceIndex {
 public:
  // Returns the entry of place, or null.
  template <class Entry>
  Entry* find(std::vector<Entry>& entries, const Place& place) const noexcept {
    for (std::size_t at = hash(place); !slots_.empty(); ++at) {
      const std::uint32_t number = slots_[at % slots_.size()];
      if (number == none) {
        break;
      }
      if (entries[number].place.is_same_as(place)) {
        return &entries[number];
      }
    }
    return nullptr;
  }

  // Puts entry, whose place is new, last. Throws std::bad_alloc, and changes nothing.
  template <class Entry>
  Entry& add(std::vector<Entry>& entries, Entry entry) {
    make_room(entries);
    entries.push_back(std::move(entry));
    put(entries.back().place, entries.size() - 1);
    return entries.back();
  }

  // Finds all of entries, and has room for one more. Throws std::bad_alloc, and changes nothing.
  template <class Entry>
  void make_room(const std::vector<Entry>& entries) {
    constexpr std::size_t least_slots = 64;
    const std::size_t wanted = 2 * (entries.size() + 1);
    if (wanted > slots_.size()) {
      std::vector<std::uint32_t> slots(std::max(least_slots, std::bit_ceil(wanted)), none);
      slots_.swap(slots);
      fill_in(entries);
    }
  }

  // entries have changed, and are not more than they were.
  template <class Entry>
  void fill_in(const std::vector<Entry>& entries) noexcept {
    std::fill(slots_.begin(), slots_.end(), none);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      put(entries[i].place, i);
    }
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  static std::size_t hash(const Place& place) noexcept {
    return std::hash<std::string_view>{}(place.file) + place.line;
  }
  void put(const Place& place, std::size_t number) noexcept {
    std::size_t at = hash(place);
    while (slots_[at % slots_.size()] != none) {
      ++at;
    }
    slots_[at % slots_.size()] = static_cast<std::uint32_t>(number);
  }

  std::vector<std::uint32_t> slots_;  // a power of two, at least half of them none
};

}  // namespace ebb::inline v0::detail
