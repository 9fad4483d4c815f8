// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), keyed, with ebb's own distributions. Values: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ebb::inline v0 {

// Returns the FNV-1a 64-bit hash of the bytes of text: how names become keys.
constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

// Returns the four words that the 10-round Philox 4x32 function gives for a counter under a key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept;

// A stream of numbers that depends on (seed, epoch, sample, name) only: not on threads, order,
// machine or standard library. [rt.random] Resumed runs rely on it, so this mapping is a format:
//   key      = mix(mix(mix(seed) ^ fnv1a(name)) ^ epoch), low word first, where mix adds
//              0x9e3779b97f4a7c15 and applies the bijective finalizer of SplitMix64
//   counter  = {block low, block high, sample low, sample high}; blocks count from 0
// Each block gives its four words in order. Streams of one seed and name never share a key and a
// counter; those of other seeds and names differ in a mixed 64-bit key.
//
//   ebb::Random random(seed, "dropout", epoch, sample);
class Random {
 public:
  explicit Random(std::uint64_t seed, std::string_view name = "", std::uint64_t epoch = 0,
                  std::uint64_t sample = 0) noexcept;

  std::uint32_t next_u32() noexcept;
  std::uint64_t next_u64() noexcept;  // two words, the low one first
  // Returns a number in [0, bound), each equally likely; 0 for bound 0.
  std::uint64_t below(std::uint64_t bound) noexcept;
  // Returns a number in [0, 1), a multiple of 2^-24.
  float uniform() noexcept;
  // Returns low + (high - low) * uniform(), which may round up to high.
  float uniform(float low, float high) noexcept;
  // Returns a number of the standard normal distribution (Box-Muller; at most 6.66 from 0). Each
  // pair of calls takes two words.
  float normal() noexcept;

 private:
  void refill() noexcept;

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> words_{};
  unsigned used_ = 4;
  bool has_spare_ = false;
  float spare_ = 0;
};

// Fill out with the numbers that random would give one by one.
void fill_uniform(std::span<float> out, float low, float high, Random random) noexcept;
void fill_normal(std::span<float> out, float mean, float deviation, Random random) noexcept;

}  // namespace ebb::inline v0
