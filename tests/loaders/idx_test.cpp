// SPDX-License-Identifier: Apache-2.0
// IDX files: what is read, and what is refused, by name and offset. [load.formats] [load.error]
#include "idx_fixture.h"
#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <limits>
#include <optional>

#include <sys/stat.h>

using ebb::LoadError;
using ebb::LoadErrorKind;
using ebb::test::contains;
using ebb::test::gzip;
using ebb::test::idx_header;
using ebb::test::images;
using ebb::test::labels;
using ebb::test::TempFolder;

namespace {

// Opens what must be refused; returns the error.
std::optional<LoadError> refused(const std::filesystem::path& x, const std::filesystem::path& y) {
  try {
    ebb::open_idx(x, y);
  } catch (const LoadError& error) {
    return error;
  }
  return std::nullopt;
}

// Demands that a file of these bytes, given as images, is refused at offset with text in the words.
void check_images(const std::string& bytes, LoadErrorKind kind, std::uint64_t offset,
                  const std::string& text) {
  const TempFolder folder;
  const auto y = folder.write("y", labels(4));
  const auto x = folder.write("x", bytes);
  CAPTURE(text);
  const auto error = refused(x, y);
  REQUIRE(error.has_value());
  CAPTURE(error->what());
  CHECK(error->kind() == kind);
  CHECK(error->info().source == x.string());
  CHECK(error->info().offset == offset);
  CHECK(contains(error->what(), text));
  CHECK(contains(error->what(), "[open_idx] "));
  CHECK(contains(error->what(), x.string() + " at byte " + std::to_string(offset)));
  CHECK_FALSE(contains(error->what(), "\n"));
}

}  // namespace

TEST_CASE("idx: pixels become (byte/255 - mean)/std and labels become i64") {
  const TempFolder folder;
  const std::string plain_x = images(5);
  const std::string plain_y = labels(5);
  // Names say nothing: only the first bytes do.
  const auto x = folder.write("x", plain_x);
  const auto y = folder.write("y.gz", plain_y);
  const auto packed_x = folder.write("packed-x", gzip(plain_x));
  const auto packed_y =
      folder.write("packed-y", gzip(plain_y.substr(0, 3)) + gzip(plain_y.substr(3)));

  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  for (const bool packed : {false, true}) {
    const ebb::AnyDataset data =
        packed ? ebb::open_idx(packed_x, packed_y, {.mean = 0.25f, .std = 0.5f})
               : ebb::open_idx(x, y, {.mean = 0.25f, .std = 0.5f});
    CHECK(data.size() == 5);
    CHECK(data.name() == (packed ? "packed-x" : "x"));
    ebb::Loader loader(rt, data, {.batch = 5, .workers = 0, .shuffle = false});
    const auto batch = loader.next();
    REQUIRE(batch.has_value());
    const auto [images_of, labels_of] = batch->fields<2>();
    CHECK(images_of.shape() == ebb::Shape{5, 1, 2, 3});
    CHECK(labels_of.shape() == ebb::Shape{5});
    for (std::size_t i = 0; i < 30; ++i) {
      const auto byte = static_cast<std::uint8_t>(plain_x[16 + i]);
      const float expected = (static_cast<float>(byte) / 255.0f - 0.25f) / 0.5f;
      CHECK(images_of.span<const float>()[i] == expected);
    }
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(labels_of.span<const std::int64_t>()[i] == static_cast<std::uint8_t>(250 + i));
    }
  }
}

TEST_CASE("idx: the fingerprint tells contents and options apart") {
  const TempFolder folder;
  const auto x = folder.write("x", images(5));
  const auto y = folder.write("y", labels(5));
  std::string other_bytes = images(5);
  other_bytes.back() ^= 1;
  const auto other = folder.write("other", other_bytes);
  const std::uint64_t first = ebb::open_idx(x, y).fingerprint();
  CHECK(first == ebb::open_idx(x, y).fingerprint());
  CHECK(first != ebb::open_idx(other, y).fingerprint());
  CHECK(first != ebb::open_idx(x, y, {.mean = 0.5f}).fingerprint());
  CHECK(first != ebb::open_idx(x, y, {.std = 0.5f}).fingerprint());
}

TEST_CASE("idx: a malformed header is refused at its byte") {
  check_images("", LoadErrorKind::corrupt, 0, "empty");
  check_images(images(4).substr(0, 3), LoadErrorKind::corrupt, 3, "truncated in the magic number");
  check_images(images(4).substr(0, 10), LoadErrorKind::corrupt, 10, "truncated in the sizes");
  check_images("PK\3\4 something else", LoadErrorKind::corrupt, 0, "not an IDX file");
  check_images(idx_header({4, 2, 3}, 0x0d) + std::string(96, 'x'), LoadErrorKind::shape, 2, "f32");
  check_images(idx_header({4, 2, 3}, 0x33) + std::string(24, 'x'), LoadErrorKind::shape, 2,
               "unknown");
  check_images(labels(4), LoadErrorKind::shape, 3, "are these labels?");
  check_images(idx_header({4, 1, 2, 3}) + std::string(24, 'x'), LoadErrorKind::shape, 3,
               "4 dimensions");
  check_images(idx_header({0, 2, 3}), LoadErrorKind::shape, 4, "dimension 0 is 0");
  check_images(idx_header({4, 2, 0}), LoadErrorKind::shape, 12, "dimension 2 is 0");
  const std::uint32_t most = 0xffffffffu;
  check_images(idx_header({most, most, most}) + "x", LoadErrorKind::corrupt, 12, "overflows");
}

TEST_CASE("idx: missing or additional data is refused at its byte") {
  check_images(images(4).substr(0, 16), LoadErrorKind::corrupt, 16, "truncated");
  check_images(images(4).substr(0, 39), LoadErrorKind::corrupt, 39, "truncated");
  check_images(images(4) + "x", LoadErrorKind::corrupt, 40, "bytes follow the data");
  check_images(gzip(images(4).substr(0, 39)), LoadErrorKind::corrupt, 39, "truncated");
  check_images(gzip(images(4) + "x"), LoadErrorKind::corrupt, 40, "bytes follow the data");
}

TEST_CASE("idx: sizes that the file cannot hold are refused before memory is asked for") {
  // 2^32 - 1 images of 64 KiB: an attempt to allocate or to touch them would show.
  const std::string header = idx_header({0xffffffffu, 256, 256});
  const long before = ebb::test::self_status("VmPeak:");
  check_images(header + "x", LoadErrorKind::corrupt, 17, "more than the file holds");
  check_images(gzip(header + "x"), LoadErrorKind::corrupt, 16, "more than the file holds");
  CHECK(ebb::test::self_status("VmPeak:") - before < 64 * 1024);
}

TEST_CASE("idx: a damaged gzip stream is refused at its byte in the file") {
  const std::string packed = gzip(images(4));
  for (std::size_t size = 2; size < packed.size(); ++size) {
    CAPTURE(size);
    check_images(packed.substr(0, size), LoadErrorKind::corrupt, size, "ends early");
  }
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] ^= 1;
  check_images(wrong_sum, LoadErrorKind::corrupt, packed.size() - 4, "corrupt gzip data");
  check_images(packed + "garbage", LoadErrorKind::corrupt, packed.size(), "no gzip");
}

TEST_CASE("idx: files that cannot be read are refused with the system's reason") {
  const TempFolder folder;
  const auto x = folder.write("x", images(4));
  const auto y = folder.write("y", labels(4));
  const auto missing = refused(folder.path() / "no-such-file", y);
  REQUIRE(missing.has_value());
  CHECK(missing->kind() == LoadErrorKind::io);
  CHECK(contains(missing->what(), "no-such-file"));
  CHECK(contains(missing->what(), "No such file"));
  const auto directory = refused(folder.path(), y);
  REQUIRE(directory.has_value());
  CHECK(directory->kind() == LoadErrorKind::io);
  CHECK(contains(directory->what(), "directory"));
  const auto pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto fifo = refused(x, pipe);
  REQUIRE(fifo.has_value());
  CHECK(contains(fifo->what(), "not a regular file"));
  if (geteuid() != 0) {
    std::filesystem::permissions(x, std::filesystem::perms::none);
    const auto forbidden = refused(x, y);
    REQUIRE(forbidden.has_value());
    CHECK(contains(forbidden->what(), "Permission denied"));
  } else {
    MESSAGE("root may read everything: the case of a file without permission is left out");
  }
}

TEST_CASE("idx: labels are checked as images are, and counts must agree") {
  const TempFolder folder;
  const auto x = folder.write("x", images(4));
  const auto swapped = refused(x, x);
  REQUIRE(swapped.has_value());
  CHECK(contains(swapped->what(), "are these images?"));
  const auto y = folder.write("y", labels(5));
  const auto counts = refused(x, y);
  REQUIRE(counts.has_value());
  CHECK(counts->kind() == LoadErrorKind::shape);
  CHECK(counts->info().source == y.string());
  CHECK(counts->info().offset == 4);
  CHECK(contains(counts->what(), "5 labels, but 4 images in " + x.string()));
}

TEST_CASE("idx: options that cannot be are the caller's mistake") {
  const TempFolder folder;
  const auto x = folder.write("x", images(4));
  const auto y = folder.write("y", labels(4));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(ebb::open_idx(x, y, {.std = 0}), std::invalid_argument);
  CHECK_THROWS_AS(ebb::open_idx(x, y, {.std = -1}), std::invalid_argument);
  CHECK_THROWS_AS(ebb::open_idx(x, y, {.std = nan}), std::invalid_argument);
  CHECK_THROWS_AS(ebb::open_idx(x, y, {.mean = nan}), std::invalid_argument);
}

TEST_CASE("idx: Fashion-MNIST of Debian opens, with the labels that it is known for") {
  const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder / "t10k-images-idx3-ubyte.gz")) {
    MESSAGE("skipped: the package dataset-fashion-mnist is not installed");
    return;
  }
  const ebb::AnyDataset data =
      ebb::open_idx(folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz");
  REQUIRE(data.size() == 10000);
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  ebb::Loader loader(rt, data, {.batch = 1000});
  std::vector<int> counts(10);
  while (const auto batch = loader.next()) {
    CHECK(batch->field("x").shape() == ebb::Shape{1000, 1, 28, 28});
    for (const std::int64_t label : batch->field("y").span<const std::int64_t>()) {
      ++counts.at(static_cast<std::size_t>(label));
    }
  }
  CHECK(counts == std::vector<int>(10, 1000));  // the test set is balanced
}
