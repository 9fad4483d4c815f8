// SPDX-License-Identifier: Apache-2.0
// The 16-bit floats, all 65536 values of each, against a model that searches for the nearest.
// One thread.
#include <ebb/runtime/half.h>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>

using ebb::BFloat16;
using ebb::Half;

namespace {

template <class T>
double exact(std::uint32_t bits) {
  return static_cast<double>(static_cast<float>(T::from_bits(static_cast<std::uint16_t>(bits))));
}

// Magnitudes only: the bits grow with the value. Returns the bits that value rounds to.
template <class T>
std::uint32_t nearest(double value, std::uint32_t infinity) {
  std::uint32_t low = 0;
  std::uint32_t high = infinity;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (exact<T>(middle) <= value ? low : high) = middle;
  }
  // Past the largest, the step goes on as if there were one more.
  const double below = exact<T>(low);
  const double above = high == infinity ? below + (below - exact<T>(low - 1)) : exact<T>(high);
  if (value - below != above - value) {
    return value - below < above - value ? low : high;
  }
  return low % 2 == 0 ? low : high;
}

template <class T>
constexpr std::uint32_t infinity_of = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;

template <class T>
void check_value(double value) {
  const T got(value);
  const std::uint32_t want = nearest<T>(std::abs(value), infinity_of<T>);
  if (got.bits() != (want | (std::signbit(value) ? 0x8000u : 0u))) {
    FAIL_CHECK(value << " became " << static_cast<float>(got));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("half: every value goes to float and back unchanged, NaNs included", T, Half,
                   BFloat16) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const T value = T::from_bits(static_cast<std::uint16_t>(bits));
    const float wide = value;
    REQUIRE(T(wide).bits() == bits);
    const std::uint32_t magnitude = bits & 0x7fffu;
    REQUIRE(std::isnan(wide) == (magnitude > infinity_of<T>));
    REQUIRE(std::isinf(wide) == (magnitude == infinity_of<T>));
    REQUIRE(std::signbit(wide) == (bits >= 0x8000u));
    if (magnitude <= infinity_of<T>) {
      REQUIRE(T(static_cast<double>(wide)).bits() == bits);
    }
  }
}

TEST_CASE("half: the values are those of binary16 and of bfloat16") {
  CHECK(Half::from_bits(0x3c00) == 1.0F);
  CHECK(Half::from_bits(0x0001) == 0x1p-24F);
  CHECK(Half::from_bits(0x03ff) == 1023 * 0x1p-24F);
  CHECK(Half::from_bits(0x0400) == 0x1p-14F);
  CHECK(Half::from_bits(0x7bff) == 65504.0F);
  CHECK(Half::from_bits(0xc000) == -2.0F);
  CHECK(Half::from_bits(0x3555) == 0.333251953125F);
  CHECK(BFloat16::from_bits(0x3f80) == 1.0F);
  CHECK(BFloat16::from_bits(0x0001) == 0x1p-133F);
  CHECK(BFloat16::from_bits(0x4049) == 3.140625F);
  static_assert(Half(1.5F).bits() == 0x3e00 && BFloat16(-2).bits() == 0xc000);
}

TEST_CASE_TEMPLATE("half: halfway and beside it, every pair of neighbours rounds right", T, Half,
                   BFloat16) {
  for (std::uint32_t bits = 0; bits + 1 < infinity_of<T>; ++bits) {
    const double low = exact<T>(bits);
    const double middle = low + (exact<T>(bits + 1) - low) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    const double down = std::nextafter(middle, 0.0);
    const double up = std::nextafter(middle, std::numeric_limits<double>::infinity());
    REQUIRE(T(middle).bits() == even);
    REQUIRE(T(-middle).bits() == (even | 0x8000u));
    REQUIRE(T(down).bits() == bits);  // a double: a float between would make it the middle
    REQUIRE(T(up).bits() == bits + 1);
    if (static_cast<double>(static_cast<float>(middle)) == middle) {
      REQUIRE(T(static_cast<float>(middle)).bits() == even);
    }
  }
}

TEST_CASE("half: what is too large is infinite, what is too small is 0, of either sign") {
  CHECK(Half(65519.99).bits() == 0x7bff);
  CHECK(Half(65520.0F).bits() == 0x7c00);
  CHECK(Half(-1e300).bits() == 0xfc00);
  CHECK(Half(std::numeric_limits<float>::max()).bits() == 0x7c00);
  CHECK(Half(0x1p-25).bits() == 0);
  CHECK(Half(0x1.000001p-25).bits() == 1);
  CHECK(Half(-1e-300).bits() == 0x8000);
  CHECK(Half(-0.0F).bits() == 0x8000);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits() == 0x7f80);
  CHECK(BFloat16(std::numeric_limits<float>::denorm_min()).bits() == 0);
}

TEST_CASE("half: a NaN whose payload is lost stays a NaN") {
  CHECK(Half(std::bit_cast<float>(0x7f800001u)).bits() == 0x7e00);
  CHECK(BFloat16(std::bit_cast<float>(0xff800001u)).bits() == 0xffc0);
  CHECK(std::isnan(static_cast<float>(Half(std::numeric_limits<double>::quiet_NaN()))));
}

TEST_CASE("half: integers round once, large ones too") {
  for (int n = -70000; n <= 70000; ++n) {
    check_value<Half>(n);
    REQUIRE(Half(n).bits() == Half(static_cast<double>(n)).bits());
  }
  // Just past the middle of two bfloat16: a rounding to double or float in between would lose it.
  const std::int64_t middle = (std::int64_t{1} << 62) + (std::int64_t{1} << 54);
  CHECK(BFloat16(middle).bits() == 0x5e80);
  CHECK(BFloat16(middle + 1).bits() == 0x5e81);
  CHECK(BFloat16(-middle - 1).bits() == 0xde81);
  CHECK(BFloat16(std::numeric_limits<std::int64_t>::min()) == -0x1p63F);
  CHECK(BFloat16(~std::uint64_t{0}) == 0x1p64F);
  CHECK(Half(true) == 1.0F);
}

TEST_CASE("half: random doubles become the nearest") {
  const char* const text = std::getenv("EBB_TEST_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 20261130;
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 engine(seed);
  for (int n = 0; n < 200000; ++n) {
    const double mantissa = std::ldexp(static_cast<double>(engine() >> 11), -53) + 1;
    const int exponent = static_cast<int>(engine() % 50) - 30;
    const double value = std::ldexp(engine() % 2 == 0 ? mantissa : -mantissa, exponent);
    check_value<Half>(value);
    check_value<BFloat16>(value);
    check_value<BFloat16>(std::ldexp(value, static_cast<int>(engine() % 200) - 100));
  }
}
