// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10 and ebb's own distributions. Every result is pinned by tests, because resumed runs
// rely on it: only operations that IEEE 754 rounds exactly are used, no libm. Any thread.
#include <ebb/runtime/random.h>

#include <cmath>

#ifdef __FAST_MATH__
#error "random numbers must be the same in every build: compile random.cpp without -ffast-math"
#endif

namespace ebb::inline v0 {

namespace {

// The bijective finalizer of SplitMix64 after its increment: nearby inputs give unrelated outputs,
// and no two give the same.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::uint32_t low_word(std::uint64_t x) noexcept {
  return static_cast<std::uint32_t>(x);
}
constexpr std::uint32_t high_word(std::uint64_t x) noexcept {
  return static_cast<std::uint32_t>(x >> 32);
}

struct Product128 {
  std::uint64_t high;
  std::uint64_t low;
};

Product128 multiply(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;  // gcc and clang, 64-bit machines
  const Wide product = static_cast<Wide>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

// Returns ln(k / 2^32) for k from 1 to 2^32, to about 1e-15. With k = m 2^e and m around 1,
// ln m = 2 artanh((m - 1) / (m + 1)), whose series converges quickly.
double log_of_fraction(std::uint64_t k) noexcept {
  constexpr double ln2 = 0.693147180559945309417232121458;
  constexpr double sqrt2 = 1.41421356237309504880168872421;
  int exponent = 63 - __builtin_clzll(k);
  double m = static_cast<double>(k) / static_cast<double>(std::uint64_t{1} << exponent);
  if (m > sqrt2) {
    m /= 2;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double sum = 0;
  for (int n = 21; n >= 1; n -= 2) {  // |s| < 0.172: the next term is below 1e-17
    sum = sum * s2 + 1.0 / n;
  }
  return 2 * s * sum + (exponent - 32) * ln2;
}

struct SinCos {
  double sin;
  double cos;
};

// Returns sine and cosine of turn / 2^32 of a full turn: the Taylor series of the distance to the
// nearest quarter, at most pi / 4, turned by the quarters.
SinCos sin_cos_of_turn(std::uint32_t turn) noexcept {
  constexpr double two_pi = 6.28318530717958647692528676656;
  const std::uint32_t quarter = (turn + (std::uint32_t{1} << 29)) >> 30;  // 0 again past the last
  const auto rest = static_cast<std::int32_t>(turn - (quarter << 30));
  const double a = rest * (two_pi / 4294967296.0);
  const double a2 = a * a;
  double sin = 1;
  double cos = 1;
  for (int n = 16; n >= 2; n -= 2) {
    cos = 1 - cos * a2 / (n * (n - 1));
    sin = 1 - sin * a2 / (n * (n + 1));
  }
  sin *= a;
  switch (quarter & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xd2511f53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xcd9e8d57u} * counter[2];
    counter = {high_word(product1) ^ counter[1] ^ key[0], low_word(product1),
               high_word(product0) ^ counter[3] ^ key[1], low_word(product0)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

Random::Random(std::uint64_t seed, std::string_view name, std::uint64_t epoch,
               std::uint64_t sample) noexcept
    : counter_{0, 0, low_word(sample), high_word(sample)} {
  const std::uint64_t key = mix(mix(mix(seed) ^ fnv1a(name)) ^ epoch);
  key_ = {low_word(key), high_word(key)};
}

void Random::refill() noexcept {
  words_ = philox4x32(counter_, key_);
  used_ = 0;
  if (++counter_[0] == 0) {
    ++counter_[1];
  }
}

std::uint32_t Random::next_u32() noexcept {
  if (used_ == words_.size()) {
    refill();
  }
  return words_[used_++];
}

std::uint64_t Random::next_u64() noexcept {
  const std::uint64_t low = next_u32();
  return low | (std::uint64_t{next_u32()} << 32);
}

// The high word of a random word times bound is the number; it is unbiased once the few low words
// that would come up once too often are drawn again (Lemire, "Fast random integer generation in an
// interval", 2019).
std::uint64_t Random::below(std::uint64_t bound) noexcept {
  Product128 product = multiply(next_u64(), bound);
  if (product.low < bound) {
    const std::uint64_t too_often = (0 - bound) % bound;
    while (product.low < too_often) {
      product = multiply(next_u64(), bound);
    }
  }
  return product.high;
}

float Random::uniform() noexcept {
  return static_cast<float>(next_u32() >> 8) * 0x1p-24F;
}

float Random::uniform(float low, float high) noexcept {
  return low + (high - low) * uniform();
}

float Random::normal() noexcept {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * log_of_fraction(std::uint64_t{next_u32()} + 1));
  const SinCos direction = sin_cos_of_turn(next_u32());
  spare_ = static_cast<float>(radius * direction.sin);
  has_spare_ = true;
  return static_cast<float>(radius * direction.cos);
}

void fill_uniform(std::span<float> out, float low, float high, Random random) noexcept {
  for (float& x : out) {
    x = random.uniform(low, high);
  }
}

void fill_normal(std::span<float> out, float mean, float deviation, Random random) noexcept {
  for (float& x : out) {
    x = mean + deviation * random.normal();
  }
}

}  // namespace ebb::inline v0
