// SPDX-License-Identifier: Apache-2.0
// The holes of a heap by size, for best fit, and by address, for lookups. Bins of eight per
// doubling keep the size trees tiny. Used by Space; not shared between threads.
#pragma once

#include "record.h"
#include "treap.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

// The holes of one lane by size. Sizes are multiples of 64, at least 64.
class SizeIndex {
 public:
  void insert(HeapRecord& hole) noexcept {
    const std::size_t bin = bin_of(hole.size);
    bins_[bin].insert(hole);
    used_[bin / 64] |= std::uint64_t{1} << bin % 64;
  }
  void erase(HeapRecord& hole) noexcept {
    const std::size_t bin = bin_of(hole.size);
    bins_[bin].erase(hole);
    if (bins_[bin].empty()) {
      used_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
    }
  }
  void resize(HeapRecord& hole, std::byte* begin, std::size_t size) noexcept {
    const std::size_t bin = bin_of(hole.size);
    if (bin == bin_of(size) && bins_[bin].is_only(hole)) {
      hole.data = begin;
      hole.size = size;
      return;
    }
    erase(hole);
    hole.data = begin;
    hole.size = size;
    insert(hole);
  }

  // The smallest hole of at least size, the lowest address among equals; null when there is none.
  HeapRecord* best_fit(std::size_t size) const noexcept {
    const std::size_t bin = bin_of(size);
    HeapRecord* hole =
        bins_[bin].lower_bound([size](const HeapRecord& it) { return it.size < size; });
    return hole != nullptr ? hole : first_from(bin + 1);
  }
  // The hole that best_fit would give if hole did not exist.
  HeapRecord* next_fit(HeapRecord& hole) const noexcept {
    HeapRecord* next = Treap<BySize>::next(hole);
    return next != nullptr ? next : first_from(bin_of(hole.size) + 1);
  }
  std::size_t largest() const noexcept;
  bool empty() const noexcept;
  // Adds how many there are.
  bool is_valid(std::uint32_t lane, std::size_t& count) const noexcept;

 private:
  struct BySize {
    static TreeLinks& links(HeapRecord& record) noexcept { return record.hole.by_size; }
    static bool less(const HeapRecord& a, const HeapRecord& b) noexcept {
      return a.size != b.size ? a.size < b.size : a.begin() < b.begin();
    }
  };

  static constexpr std::size_t bin_count = 320;
  static constexpr std::size_t word_count = bin_count / 64;

  // Exact below 16 granules, then eight bins per doubling; 2^47 bytes fall into the last.
  static std::size_t bin_of(std::size_t size) noexcept {
    const std::uint64_t granules = size / 64;
    if (granules < 8) {
      return granules;
    }
    const auto exponent = static_cast<std::size_t>(std::bit_width(granules)) - 1;
    return (exponent - 2) * 8 + (granules >> (exponent - 3)) % 8;
  }
  HeapRecord* first_from(std::size_t bin) const noexcept {
    if (bin >= bin_count) {
      return nullptr;
    }
    std::size_t word = bin / 64;
    std::uint64_t bits = used_[word] & ~std::uint64_t{0} << bin % 64;
    while (bits == 0) {
      if (++word == word_count) {
        return nullptr;
      }
      bits = used_[word];
    }
    return bins_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))].first();
  }

  std::array<Treap<BySize>, bin_count> bins_;
  std::array<std::uint64_t, word_count> used_{};
};

// All holes. Those of lane 0 are at hand; the others' lanes are opened first.
class HoleIndex {
 public:
  void insert(HeapRecord& hole) noexcept {
    of(hole.lane()).insert(hole);
    by_address_.insert(hole);
    ++count_;
  }
  void erase(HeapRecord& hole) noexcept {
    of(hole.lane()).erase(hole);
    by_address_.erase(hole);
    --count_;
  }
  // Moves the bounds of a hole that stays between the same neighbours, so that its place in the
  // order of addresses stays as well.
  void resize(HeapRecord& hole, std::byte* begin, std::size_t size) noexcept {
    of(hole.lane()).resize(hole, begin, size);
  }

  SizeIndex& of(std::uint32_t lane) noexcept { return lane == 0 ? first_ : *others_[lane]; }
  const SizeIndex& of(std::uint32_t lane) const noexcept {
    return lane == 0 ? first_ : *others_[lane];
  }
  bool has(std::uint32_t lane) const noexcept { return lane == 0 || others_[lane] != nullptr; }
  // index lives as long as this.
  void open(std::uint32_t lane, SizeIndex& index) noexcept { others_[lane] = &index; }
  // Calls visit(lane, holes) for the lanes that are open, until it returns false.
  template <class Visit>
  void for_each_lane(Visit visit) const {
    for (std::uint32_t lane = 0; lane < Stream::lanes; ++lane) {
      if (has(lane) && !visit(lane, of(lane))) {
        return;
      }
    }
  }

  // Whether another lane has any hole: without a look at each.
  bool has_others(std::uint32_t lane) const noexcept {
    bool any = false;
    for_each_lane([&any, lane](std::uint32_t other, const SizeIndex& holes) {
      any = other != lane && !holes.empty();
      return !any;
    });
    return any;
  }

  // The hole with the highest begin that is not above address; null when there is none.
  HeapRecord* floor(const std::byte* address) const noexcept {
    return by_address_.last_where(
        [address](const HeapRecord& it) { return it.begin() <= address; });
  }
  std::size_t largest() const noexcept;
  std::size_t count() const noexcept { return count_; }

  bool is_valid() const noexcept;

 private:
  struct ByAddress {
    static TreeLinks& links(HeapRecord& record) noexcept { return record.hole.by_address; }
    static bool less(const HeapRecord& a, const HeapRecord& b) noexcept {
      return a.begin() < b.begin();
    }
  };

  SizeIndex first_;
  Treap<ByAddress> by_address_;
  std::size_t count_ = 0;
  std::array<SizeIndex*, Stream::lanes> others_{};
};

}  // namespace ebb::inline v0::detail
