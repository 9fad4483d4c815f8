// SPDX-License-Identifier: Apache-2.0
// A shuffle that stays near the data set's own order, so that files are read nearly from begin to
// end. A part of Order. Values: any thread.
#pragma once

#include <ebb/loaders/permutation.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ebb::inline v0 {

// How far a windowed shuffle reaches. A position gets any of `window` samples around it with about
// equal chances, and never one that is `window` or more away. On average it is 0.27 windows away,
// where a full shuffle takes it a third of the data set away: in a data set that is sorted by label
// every batch is of few labels, unless there are pages. A window that is not less than the data set
// is a full shuffle.
struct WindowOptions {
  std::uint64_t window = 8192;  // samples, at least 4; powers of two are quickest
  // Runs of so many samples are put in an order of their own before the window goes over them, and
  // stay whole: shards, or what one read brings. A batch then mixes window / page places of the
  // data set. From 64 on its labels vary as in a full shuffle, within 5 %. 0: no pages.
  std::uint64_t page = 0;
};

namespace detail {

// Two layers of blocks of half a window: each block is permuted by itself, and the blocks of one
// layer begin in the middle of the other's. Where they begin is another place every epoch.
class WindowedOrder {
 public:
  // window is less than size. Throws std::invalid_argument when size is more than 2^40.
  WindowedOrder(const WindowOptions& options, std::uint64_t size, std::uint64_t key);

  void fill(std::uint64_t first, std::span<std::uint64_t> indices) const noexcept;
  std::uint64_t position_of(std::uint64_t index) const noexcept;

 private:
  // The positions from begin on, as many as the permutation has.
  struct Block {
    std::uint64_t begin;
    Permutation inside;

    std::uint64_t at(std::uint64_t position) const noexcept {
      return begin + inside.at(position - begin);
    }
    std::uint64_t position_of(std::uint64_t position) const noexcept {
      return begin + inside.position_of(position - begin);
    }
  };
  Block block_at(std::size_t layer, std::uint64_t position) const noexcept;

  std::uint64_t size_;
  std::uint64_t key_;
  std::uint64_t block_;                  // samples
  std::array<std::uint64_t, 2> shifts_;  // where the second block of each layer begins
  std::uint64_t page_;                   // samples; 0: no pages
  Permutation pages_;                    // the whole ones; what is left of a page stays at the end
};

}  // namespace detail

}  // namespace ebb::inline v0
