// SPDX-License-Identifier: Apache-2.0
// Damaged IDX files: each is refused by a LoadError that names the file, or is still a whole file.
#include "fuzz_fixture.h"
#include "idx_fixture.h"
#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using ebb::test::contains;
using ebb::test::damaged;
using ebb::test::gzip;

TEST_CASE("idx: whatever is done to a file, it is refused by name or it is whole") {
  const std::uint64_t seed = ebb::test::test_seed();
  const std::uint64_t rounds = std::max<std::uint64_t>(ebb::test::stress(8000) / 4, 100);
  MESSAGE("EBB_TEST_SEED=" << seed);
  ebb::Random random(seed, "idx");
  const ebb::test::TempFolder folder;
  const auto y = folder.write("y", ebb::test::labels(9));
  const std::string plain = ebb::test::images(9);
  const std::string packed = gzip(plain);
  const std::size_t header_bytes = ebb::test::idx_header({9, 2, 3}).size();
  std::uint64_t refused = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool from_plain = random.below(2) == 0;
    const std::string bytes = damaged(from_plain ? plain : packed, random);
    const auto x = folder.write("x", random.below(4) == 0 ? gzip(bytes) : bytes);
    try {
      const ebb::AnyDataset data = ebb::open_idx(x, y);
      REQUIRE(data.size() == 9);
      // A cut may fit a size that has changed too, and the file is whole again with smaller images.
      // Of a packed file nothing can have changed: its checksum would tell.
      const std::size_t whole_bytes = from_plain ? bytes.size() : plain.size();
      const std::int64_t elements = data.schema().fields[0].sample_shape.elements();
      REQUIRE(header_bytes + 9 * static_cast<std::size_t>(elements) == whole_bytes);
    } catch (const ebb::LoadError& error) {
      ++refused;
      CAPTURE(std::string(error.what()));
      // Of the two files, it is the images or, when only the count is wrong, the labels.
      REQUIRE(contains(error.what(), folder.path().string()));
      REQUIRE(error.info().offset.has_value());
    }
  }
  CHECK(refused > rounds / 4);
  CHECK(refused < rounds);
}
