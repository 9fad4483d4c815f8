// SPDX-License-Identifier: Apache-2.0
// The keyed permutation behind shuffling. Its constants are part of the format: changing one makes
// every saved position mean another batch. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/loaders/permutation.h>

#include <algorithm>
#include <bit>
#include <string>

namespace ebb::inline v0 {

namespace {

constexpr std::uint64_t max_size = std::uint64_t{1} << 40;
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;

// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", 2014): a bijection in which every input bit moves about half of the output bits.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Spreads a half of at most 21 bits, with a round's key, over 64 bits.
constexpr std::uint64_t scramble(std::uint64_t half, std::uint64_t key) noexcept {
  std::uint64_t x = (half + key) * golden;
  x ^= x >> 32;
  return x * 0xd6e8feb86659fd93u;
}

}  // namespace

// Few values need more rounds before all of their orders are about equally likely.
Permutation::Permutation(std::uint64_t size, std::uint64_t key)
    : size_(size), rounds_(size < 64 ? 16 : 6) {
  EBB_REQUIRE(size <= max_size, "Permutation", "a size of ", std::to_string(size),
              ": at most 2^40 samples can be shuffled");
  const unsigned bits = size <= 4 ? 2 : static_cast<unsigned>(std::bit_width(size - 1));
  low_bits_ = bits / 2;
  const std::uint64_t lows = std::uint64_t{1} << low_bits_;
  highs_ = std::max<std::uint64_t>((size + lows - 1) / lows, 2);
  for (std::size_t round = 0; round < rounds_; ++round) {
    key += golden;
    keys_[round] = mix(key);
  }
}

// What is exclusive-ored to the low half.
std::uint64_t Permutation::low_step(std::uint64_t high, std::size_t round) const noexcept {
  return scramble(high, keys_[round]) >> (64 - low_bits_);
}

// What is added to the high half: the upper word of the product is uniform over [0, highs_).
std::uint64_t Permutation::high_step(std::uint64_t low, std::size_t round) const noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{scramble(low, keys_[round])} * highs_) >> 64);
}

std::uint64_t Permutation::encrypt(std::uint64_t x) const noexcept {
  std::uint64_t low = x & ((std::uint64_t{1} << low_bits_) - 1);
  std::uint64_t high = x >> low_bits_;
  for (std::size_t round = 0; round < rounds_; round += 2) {
    low ^= low_step(high, round);
    high += high_step(low, round + 1);
    high -= high >= highs_ ? highs_ : 0;
  }
  return (high << low_bits_) | low;
}

std::uint64_t Permutation::decrypt(std::uint64_t x) const noexcept {
  std::uint64_t low = x & ((std::uint64_t{1} << low_bits_) - 1);
  std::uint64_t high = x >> low_bits_;
  for (std::size_t round = rounds_; round > 0; round -= 2) {
    const std::uint64_t step = high_step(low, round - 1);
    high += high < step ? highs_ : 0;
    high -= step;
    low ^= low_step(high, round - 2);
  }
  return (high << low_bits_) | low;
}

std::uint64_t Permutation::at(std::uint64_t position) const noexcept {
  EBB_ASSERT(position < size_);
  // Cycle walking: the network permutes a few values more than size, so the cycle that starts below
  // size soon comes back below it.
  std::uint64_t x = encrypt(position);
  while (x >= size_) {
    x = encrypt(x);
  }
  return x;
}

std::uint64_t Permutation::position_of(std::uint64_t value) const noexcept {
  EBB_ASSERT(value < size_);
  std::uint64_t x = decrypt(value);
  while (x >= size_) {
    x = decrypt(x);
  }
  return x;
}

std::uint64_t order_key(std::uint64_t seed, std::uint64_t epoch) noexcept {
  return mix(mix(seed + golden) ^ mix(epoch + 0x632be59bd9b4e019u));
}

}  // namespace ebb::inline v0
