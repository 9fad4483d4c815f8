// SPDX-License-Identifier: Apache-2.0
// Damaged IDX files: each is refused by a LoadError that names the file, or is still a whole file.
#include "idx_fixture.h"
#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

using ebb::test::contains;
using ebb::test::gzip;

namespace {

// Cuts, lengthens or flips bits of bytes.
std::string damaged(std::string bytes, ebb::Random& random) {
  for (std::uint64_t times = 1 + random.below(3); times > 0 && !bytes.empty(); --times) {
    switch (random.below(4)) {
      case 0:
        bytes.resize(random.below(bytes.size() + 1));
        break;
      case 1:
        bytes += static_cast<char>(random.below(256));
        break;
      case 2:
        bytes[random.below(std::min<std::uint64_t>(bytes.size(), 16))] =
            static_cast<char>(random.below(256));
        break;
      default:
        bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("idx: whatever is done to a file, it is refused by name or it is whole") {
  const char* const seed_text = std::getenv("EBB_TEST_SEED");
  const char* const stress = std::getenv("EBB_STRESS");
  const std::uint64_t seed =
      seed_text != nullptr
          ? std::strtoull(seed_text, nullptr, 10)
          : static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const long rounds =
      stress != nullptr ? std::max(std::strtol(stress, nullptr, 10) / 4, 100L) : 2000;
  MESSAGE("EBB_TEST_SEED=" << seed);
  ebb::Random random(seed, "idx");
  const ebb::test::TempFolder folder;
  const auto y = folder.write("y", ebb::test::labels(9));
  const std::string plain = ebb::test::images(9);
  const std::string packed = gzip(plain);
  const std::size_t header_bytes = ebb::test::idx_header({9, 2, 3}).size();
  long refused = 0;
  for (long round = 0; round < rounds; ++round) {
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
      CAPTURE(error.what());
      // Of the two files, it is the images or, when only the count is wrong, the labels.
      REQUIRE(contains(error.what(), folder.path().string()));
      REQUIRE(error.info().offset.has_value());
    }
  }
  CHECK(refused > rounds / 4);
  CHECK(refused < rounds);
}
