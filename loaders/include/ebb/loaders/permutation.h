// SPDX-License-Identifier: Apache-2.0
// A keyed permutation, computed per value: what orders are made of. Values: any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0 {

// A keyed permutation of [0, size): an unbalanced Feistel network over little more than size
// values, with cycle walking for those above it. O(1) memory, exact inverse. The values are part of
// ebb's format: a saved position means the same batch in every version. [load.pure]
class Permutation {
 public:
  // Throws std::invalid_argument when size is more than 2^40.
  Permutation(std::uint64_t size, std::uint64_t key);

  std::uint64_t size() const noexcept { return size_; }
  // Returns the value at position, which must be less than size.
  std::uint64_t at(std::uint64_t position) const noexcept;
  // Returns the position of value, which must be less than size.
  std::uint64_t position_of(std::uint64_t value) const noexcept;

 private:
  std::uint64_t encrypt(std::uint64_t x) const noexcept;
  std::uint64_t decrypt(std::uint64_t x) const noexcept;
  std::uint64_t low_step(std::uint64_t high, std::size_t round) const noexcept;
  std::uint64_t high_step(std::uint64_t low, std::size_t round) const noexcept;

  std::uint64_t size_;
  unsigned low_bits_ = 1;    // the low half is [0, 2^low_bits_)
  std::uint64_t highs_ = 2;  // the high half is [0, highs_)
  std::size_t rounds_;       // even
  std::array<std::uint64_t, 16> keys_{};
};

// Returns the key of an epoch: (seed, epoch + 1) and (seed + 1, epoch) have nothing in common.
std::uint64_t order_key(std::uint64_t seed, std::uint64_t epoch) noexcept;

}  // namespace ebb::inline v0
