// SPDX-License-Identifier: Apache-2.0
// One bit per page of a region: set while the page has been given back to the source.
// Used by Region; not shared between threads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

class PageMap {
 public:
  // words hold pages bits, all zero, and outlive the map.
  PageMap(std::uint64_t* words, std::size_t pages) noexcept : words_(words), pages_(pages) {}

  static std::size_t bytes_for(std::size_t pages) noexcept { return (pages + 63) / 64 * 8; }

  bool test(std::size_t page) const noexcept { return (words_[page / 64] >> page % 64 & 1) != 0; }

  // The first page in [from, to) whose bit is value, else to.
  std::size_t find(std::size_t from, std::size_t to, bool value) const noexcept {
    while (from < to) {
      const std::uint64_t word = (value ? words_[from / 64] : ~words_[from / 64]) >> from % 64;
      if (word != 0) {
        from += static_cast<std::size_t>(std::countr_zero(word));
        return from < to ? from : to;
      }
      from = (from / 64 + 1) * 64;
    }
    return to;
  }

  // Calls visit(first, last) for every run of pages in [from, to) whose bit is value, until it
  // returns false. Returns whether all were visited. visit may change the bits of its run.
  template <class Visit>
  bool for_each_run(std::size_t from, std::size_t to, bool value, Visit visit) const {
    while ((from = find(from, to, value)) < to) {
      const std::size_t last = find(from, to, !value);
      if (!visit(from, last)) {
        return false;
      }
      from = last;
    }
    return true;
  }

  std::size_t count(std::size_t from, std::size_t to) const noexcept {
    std::size_t set = 0;
    for_each_run(from, to, true, [&](std::size_t first, std::size_t last) {
      set += last - first;
      return true;
    });
    return set;
  }

  void assign(std::size_t from, std::size_t to, bool value) noexcept {
    while (from < to) {
      const std::size_t bits = to - from < 64 - from % 64 ? to - from : 64 - from % 64;
      const std::uint64_t mask = (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1)
                                 << from % 64;
      words_[from / 64] = value ? words_[from / 64] | mask : words_[from / 64] & ~mask;
      from += bits;
    }
  }

  std::size_t pages() const noexcept { return pages_; }

 private:
  std::uint64_t* words_;
  std::size_t pages_;
};

}  // namespace ebb::inline v0::detail
