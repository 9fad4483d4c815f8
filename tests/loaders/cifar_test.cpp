// SPDX-License-Identifier: Apache-2.0
// CIFAR's binary version: what is read, and what is refused, by name and offset. [load.formats]
#include "gzip_fixture.h"
#include "refused_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/cifar.h>

#include <doctest/doctest.h>

#include <limits>
#include <set>

using ebb::CifarOptions;
using ebb::LoadErrorKind;
using ebb::test::check_refused;
using ebb::test::gzip;
using ebb::test::TempFolder;
using namespace std::string_literals;

namespace {

// A record whose pixels count up from first by another step in each colour.
std::string record(const std::string& labels, std::uint8_t first) {
  std::string bytes = labels;
  for (int colour = 0; colour < 3; ++colour) {
    for (int i = 0; i < 1024; ++i) {
      bytes += static_cast<char>(first + i * (colour + 1));
    }
  }
  return bytes;
}

struct Row {
  std::vector<float> x;
  std::int64_t y;
};

// All samples, in order.
std::vector<Row> rows_of(const ebb::AnyDataset& data) {
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  ebb::Loader loader(rt, data, {.batch = 1, .workers = 0, .shuffle = false});
  std::vector<Row> rows;
  while (const auto batch = loader.next()) {
    const auto [x, y] = batch->fields<2>();
    CHECK(x.shape() == ebb::Shape{1, 3, 32, 32});
    CHECK(y.shape() == ebb::Shape{1});
    const auto pixels = x.span<const float>();
    rows.push_back({{pixels.begin(), pixels.end()}, y.span<const std::int64_t>()[0]});
  }
  return rows;
}

void check_bytes(const std::string& bytes, LoadErrorKind kind, std::uint64_t offset,
                 const std::string& text, const CifarOptions& options = {}) {
  const TempFolder folder;
  const auto path = folder.write("x.bin", bytes);
  check_refused([&] { ebb::open_cifar(path, options); }, {kind, path, offset, text});
}

}  // namespace

TEST_CASE("cifar: pixels become (byte/255 - mean)/std by colour and labels become i64") {
  const TempFolder folder;
  const std::string plain = record("\3", 0) + record("\11", 100);
  const CifarOptions options{.mean = {0.1f, 0.2f, 0.3f}, .std = {0.5f, 0.25f, 2.0f}};
  for (const auto& path : {folder.write("plain", plain), folder.write("packed", gzip(plain))}) {
    const ebb::AnyDataset data = ebb::open_cifar(path, options);
    CHECK(data.size() == 2);
    CHECK(data.name() == path.filename());
    const auto rows = rows_of(data);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].y == 3);
    CHECK(rows[1].y == 9);
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t i = 0; i < 3072; ++i) {
        const std::size_t colour = i / 1024;
        const auto byte = static_cast<std::uint8_t>(plain[row * 3073 + 1 + i]);
        const float expected =
            (static_cast<float>(byte) / 255.0f - options.mean[colour]) / options.std[colour];
        REQUIRE(rows[row].x[i] == expected);
      }
    }
  }
}

TEST_CASE("cifar: of CIFAR-100 y is the fine label, or the coarse one if asked") {
  const TempFolder folder;
  const auto path = folder.write("x", record("\4\77", 0) + record("\23\143", 1));
  const auto fine = rows_of(ebb::open_cifar(path, {.classes = 100}));
  const auto coarse = rows_of(ebb::open_cifar(path, {.classes = 100, .coarse = true}));
  REQUIRE(fine.size() == 2);
  CHECK(fine[0].y == 63);
  CHECK(fine[1].y == 99);
  CHECK(coarse[0].y == 4);
  CHECK(coarse[1].y == 19);
  CHECK(fine[1].x == coarse[1].x);
  CHECK(fine[0].x[1] == 1.0f / 255.0f);
}

TEST_CASE("cifar: files follow each other, and a folder stands for its own") {
  const TempFolder folder;
  for (int i = 1; i <= 5; ++i) {
    const std::string bytes = record(std::string(1, static_cast<char>(i)), 0);
    const std::string name = "data_batch_" + std::to_string(i) + ".bin";
    folder.write(i == 3 ? name + ".gz" : name, i == 3 ? gzip(bytes) : bytes);
  }
  folder.write("test_batch.bin", record("\0"s, 0));
  folder.write("train.bin", record("\1\2", 0));
  folder.write("test.bin", record("\1\2", 0) + record("\1\3", 0));
  const ebb::AnyDataset train = ebb::open_cifar(folder.path());
  const auto rows = rows_of(train);
  REQUIRE(rows.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(rows[i].y == static_cast<std::int64_t>(i + 1));
  }
  CHECK(train.erased().source(2) == (folder.path() / "data_batch_3.bin.gz").string());
  CHECK(train.erased().source(4) == (folder.path() / "data_batch_5.bin").string());
  CHECK(ebb::open_cifar(folder.path(), {.train = false}).size() == 1);
  CHECK(ebb::open_cifar(folder.path(), {.classes = 100}).size() == 1);
  CHECK(ebb::open_cifar(folder.path(), {.classes = 100, .train = false}).size() == 2);
  const auto two = ebb::open_cifar(
      {folder.path() / "data_batch_2.bin", folder.path() / "data_batch_1.bin"}, {.name = "two"});
  CHECK(two.name() == "two");
  CHECK(rows_of(two)[0].y == 2);
  std::filesystem::remove(folder.path() / "data_batch_4.bin");
  check_refused([&] { ebb::open_cifar(folder.path()); },
                {LoadErrorKind::io, folder.path() / "data_batch_4.bin", 0, "No such file"});
}

TEST_CASE("cifar: the fingerprint tells contents and options apart, not names") {
  const TempFolder folder;
  const std::string bytes = record("\4\7", 0) + record("\5\7", 9);
  std::string changed = bytes;
  changed.back() ^= 1;
  const CifarOptions fine{.classes = 100};
  const std::uint64_t first = ebb::open_cifar(folder.write("x", bytes), fine).fingerprint();
  CHECK(first == ebb::open_cifar(folder.write("y", gzip(bytes)), fine).fingerprint());
  std::set<std::uint64_t> all{first};
  all.insert(ebb::open_cifar(folder.write("z", changed), fine).fingerprint());
  for (const CifarOptions& options : {CifarOptions{.classes = 100, .coarse = true},
                                      CifarOptions{.classes = 100, .mean = {0, 0, 0.5f}},
                                      CifarOptions{.classes = 100, .mean = {0, 0.5f, 0}},
                                      CifarOptions{.classes = 100, .std = {0.5f, 1, 1}}}) {
    all.insert(ebb::open_cifar(folder.path() / "x", options).fingerprint());
  }
  CHECK(all.size() == 6);
}

TEST_CASE("cifar: a file that is not whole is refused at its byte") {
  const std::string one = record("\3", 0);
  check_bytes("", LoadErrorKind::corrupt, 0, "empty");
  check_bytes(gzip(""), LoadErrorKind::corrupt, 0, "empty");
  check_bytes(one.substr(0, 3072), LoadErrorKind::corrupt, 3072, "truncated");
  check_bytes(one + one.substr(0, 1), LoadErrorKind::corrupt, 3074, ".classes = 100");
  check_bytes(gzip(one + one.substr(0, 5)), LoadErrorKind::corrupt, 3078, "get the file again");
  check_bytes(one, LoadErrorKind::corrupt, 3073, ".classes = 10", {.classes = 100});
  const std::string packed = gzip(one);
  check_bytes(packed.substr(0, packed.size() - 1), LoadErrorKind::corrupt, packed.size() - 1,
              "ends early");
}

TEST_CASE("cifar: a label that is no class is refused at its byte") {
  const std::string good = record("\11", 0);
  check_bytes(good + record("\12", 0), LoadErrorKind::corrupt, 3073, "label of record 1 is 10");
  check_bytes(record("\24\0"s, 0), LoadErrorKind::corrupt, 0, "20 classes", {.classes = 100});
  check_bytes(record("\23\144", 0), LoadErrorKind::corrupt, 1, "label of record 0 is 100",
              {.classes = 100});
}

TEST_CASE("cifar: what is no file is refused with the system's reason") {
  const TempFolder folder;
  ebb::test::check_no_file(folder.path(), [](const auto& path) { ebb::open_cifar(path); });
}

TEST_CASE("cifar: options that cannot be are the caller's mistake") {
  const TempFolder folder;
  const auto path = folder.write("x", record("\3", 0));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const CifarOptions& options :
       {CifarOptions{.classes = 20}, CifarOptions{.coarse = true},
        CifarOptions{.mean = {0, nan, 0}}, CifarOptions{.std = {1, 1, 0}},
        CifarOptions{.std = {-1, 1, 1}}, CifarOptions{.std = {nan, 1, 1}}}) {
    CHECK_THROWS_AS(ebb::open_cifar(path, options), std::invalid_argument);
  }
  CHECK_THROWS_AS(ebb::open_cifar(std::vector<std::filesystem::path>{}), std::invalid_argument);
}
