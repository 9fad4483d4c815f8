// SPDX-License-Identifier: Apache-2.0
// Places to go on from in a gzip file: any byte is reached from the point before it.
#include "gzip_cursor.h"

#include "../gzip_fixture.h"
#include "support/temporary_folder.h"
#include "support/test_settings.h"

#include <ebb/runtime/random.h>

#include <doctest/doctest.h>

#include <string>

using ebb::detail::GzipCursor;
using ebb::detail::GzipPoint;
using ebb::detail::GzipPoints;
using ebb::detail::PositionedFile;

namespace {

// Text that compresses a little, with far matches.
std::string some_text(ebb::Random& random, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    if (random.below(4) == 0 && text.size() > 30000) {
      text += text.substr(text.size() - 1 - random.below(30000), random.below(200));
    } else {
      text += static_cast<char>('a' + random.below(60));
    }
  }
  text.resize(bytes);
  return text;
}

std::string read(GzipCursor& cursor, std::size_t bytes) {
  std::string text(bytes, '\0');
  text.resize(cursor.read(std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

TEST_CASE("gzip cursor: every place is reached from the point before it, at most 1 MiB away") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  ebb::Random random(seed, "gzip");
  const ebb::test::TempFolder folder;
  const std::string text = some_text(random, 5 << 20);
  for (const std::size_t part : {text.size(), std::size_t{777777}, std::size_t{60000}}) {
    std::string packed;
    for (std::size_t at = 0; at < text.size(); at += part) {
      packed += ebb::test::gzip(text.substr(at, part));
    }
    const PositionedFile file("test", folder.write("x.gz", packed));
    GzipPoints points;
    GzipCursor first(file);
    first.note(&points);
    REQUIRE(read(first, text.size() + 1) == text);
    CHECK(points.size() >= 4);
    GzipCursor cursor(file);
    for (int i = 0; i < 60; ++i) {
      const std::size_t at = i == 0 ? 0 : i == 1 ? text.size() : random.below(text.size());
      const GzipPoint& point = points.before(at);
      REQUIRE(point.unpacked <= at);
      // A point is noted at the first border of blocks that is far enough: a block is short here.
      CHECK(at - point.unpacked < 2 * GzipPoints::distance_min);
      cursor.seek(point);
      cursor.skip(at - cursor.offset());
      const std::size_t length = random.below(3) == 0 ? text.size() : random.below(100000);
      REQUIRE(read(cursor, length) == text.substr(at, length));
    }
  }
}

TEST_CASE("gzip points: too many are thinned out, and the last one before a place is found") {
  GzipPoints points;
  std::uint64_t made = 0;
  for (std::uint64_t at = 0; made < 3 * GzipPoints::count_max; at += GzipPoints::distance_min / 2) {
    if (points.is_due(at)) {
      points.add({.packed = at / 2, .unpacked = at});
      ++made;
    }
    REQUIRE(points.size() <= GzipPoints::count_max);
  }
  CHECK(points.size() >= GzipPoints::count_max / 2);
  const std::uint64_t end = points.before(~std::uint64_t{0}).unpacked;
  const std::uint64_t distance = end / (points.size() - 1);
  CHECK(points.before(0).unpacked == 0);
  for (std::uint64_t at = 0; at < end; at += distance / 3 + 1) {
    const GzipPoint& point = points.before(at);
    CHECK(point.unpacked <= at);
    CHECK(at - point.unpacked < 2 * distance);
    CHECK(point.packed == point.unpacked / 2);
  }
}
