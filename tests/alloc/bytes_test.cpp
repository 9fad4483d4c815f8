// SPDX-License-Identifier: Apache-2.0
// Byte counts and alignments: overflow is an error and never wraps. [alloc.wrap]
#include <ebb/alloc/bytes.h>

#include <doctest/doctest.h>

#include <limits>
#include <type_traits>

using ebb::Align;
using ebb::Bytes;
using namespace ebb::literals;

namespace {
constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
}

TEST_CASE("bytes: of<T> multiplies by the size of T") {
  CHECK(Bytes::of<double>(3).count() == 24);
  CHECK(Bytes::of<char>(0).count() == 0);
  CHECK(Bytes::of<float>(most / 4).count() == most - 3);
  static_assert(!std::is_convertible_v<std::size_t, Bytes>);
  static_assert(!std::is_convertible_v<Bytes, std::size_t>);
}

TEST_CASE("bytes: sums, products and differences that do not fit throw") {
  CHECK_THROWS_AS(Bytes::of<float>(most / 4 + 1), std::invalid_argument);
  CHECK_THROWS_AS(Bytes{most} + 1_B, std::invalid_argument);
  CHECK_THROWS_AS(1_B - 2_B, std::invalid_argument);
  CHECK_THROWS_AS(1_GiB * most, std::invalid_argument);
  Bytes sum = 1_KiB;
  sum += 1_MiB;
  sum -= 24_B;
  CHECK(sum == Bytes{1049576});
  CHECK(1_KiB * 0 == 0_B);
  CHECK(1_KiB < 1_MiB);
}

TEST_CASE("align: only powers of two") {
  CHECK(Align{1}.value() == 1);
  CHECK(Align{4096}.value() == 4096);
  CHECK_THROWS_WITH_AS(Align{0}, "[Align] an alignment must be a power of two",
                       std::invalid_argument);
  CHECK_THROWS_AS(Align{48}, std::invalid_argument);
}
