// SPDX-License-Identifier: Apache-2.0
// Data sets of npy and npz files: batches, whether arrays are in memory or in the file, and what
// is refused. [load.formats] [load.error]
#include "npy_fixture.h"
#include "numpy_fixture.h"
#include "refused_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/npy.h>

#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

using ebb::Bytes;
using ebb::DType;
using ebb::LoadErrorKind;
using ebb::test::check_refused;
using ebb::test::npy;
using ebb::test::numbers;
using ebb::test::TempFolder;
using ebb::test::zip;
using namespace std::string_literals;

namespace {

constexpr Bytes in_file{0};
constexpr Bytes in_memory{1 << 20};

// Calls look(batch) for the only batch of all samples, in order.
template <class Look>
void with_all(const ebb::AnyDataset& data, Look look) {
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  ebb::Loader loader(
      rt, data, {.batch = static_cast<std::int64_t>(data.size()), .workers = 0, .shuffle = false});
  const auto batch = loader.next();
  REQUIRE(batch.has_value());
  look(*batch);
}

template <class T>
std::vector<T> values_of(const ebb::Tensor& tensor) {
  const auto values = tensor.span<const T>();
  return {values.begin(), values.end()};
}

// Three samples: x of [2] in an order of bytes or elements that has to be changed, y plain.
const std::string x_bytes = npy(">i2", "(3, 2)", "\0\1\0\2\0\3\0\4\0\5\0\6"s);
const std::string x_turned = npy("<u2", "(3, 2)", numbers<std::uint16_t>({1, 3, 5, 2, 4, 6}), true);
const std::string y_bytes = npy("<f8", "(3,)", numbers<double>({0.5, 1.5, 2.5}));
const std::string b_bytes = npy("|b1", "(3,)", "\0\1\2"s);

}  // namespace

TEST_CASE("npy: sample i of a data set is [i] of each array") {
  const TempFolder folder;
  const auto x = folder.write("x.npy", x_bytes);
  const auto y = folder.write("y.npy", y_bytes);
  const auto b = folder.write("b.npy", b_bytes);
  for (const Bytes memory_max : {in_file, in_memory}) {
    const auto data =
        ebb::open_npy({{"x", x}, {"y", y}, {"b", b}}, {.memory_max = memory_max, .name = "set"});
    CHECK(data.size() == 3);
    CHECK(data.name() == "set");
    with_all(data, [](const ebb::Batch& batch) {
      CHECK(batch.field("x").shape() == ebb::Shape{3, 2});
      CHECK(values_of<std::int16_t>(batch.field("x")) ==
            std::vector<std::int16_t>{1, 2, 3, 4, 5, 6});
      CHECK(batch.field("y").shape() == ebb::Shape{3});
      CHECK(values_of<double>(batch.field("y")) == std::vector<double>{0.5, 1.5, 2.5});
      CHECK(values_of<bool>(batch.field("b")) == std::vector<bool>{false, true, true});
    });
  }
}

TEST_CASE("npy: widened and turned arrays are the same in a batch") {
  const TempFolder folder;
  const auto x = folder.write("x.npy", x_turned);
  const auto u = folder.write("u.npy", npy(">u4", "(3,)", "\0\0\0\1\377\377\377\377\0\0\1\0"s));
  for (const Bytes memory_max : {in_file, in_memory}) {
    const auto data = ebb::open_npy({{"x", x}, {"u", u}}, {.memory_max = memory_max});
    with_all(data, [](const ebb::Batch& batch) {
      CHECK(values_of<std::int32_t>(batch.field("x")) ==
            std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
      CHECK(values_of<std::int64_t>(batch.field("u")) ==
            std::vector<std::int64_t>{1, 4294967295, 256});
    });
  }
}

TEST_CASE("npy: the fingerprint is of names and contents, not of paths and of where arrays are") {
  const TempFolder folder;
  const auto x = folder.write("x.npy", x_bytes);
  const auto copy = folder.write("copy.npy", x_bytes);
  std::string changed_bytes = x_bytes;
  changed_bytes.back() ^= 1;
  const auto changed = folder.write("changed.npy", changed_bytes);
  const std::uint64_t first = ebb::open_npy({{"x", x}}).fingerprint();
  CHECK(first == ebb::open_npy({{"x", copy}}, {.memory_max = in_file}).fingerprint());
  CHECK(first != ebb::open_npy({{"z", x}}).fingerprint());
  CHECK(first != ebb::open_npy({{"x", changed}}).fingerprint());
  const auto a = folder.write("a.npz", zip({{"x.npy", x_bytes, true}}));
  const auto b = folder.write("b.npz", zip({{"x.npy", x_bytes, false}}));
  const auto c = folder.write("c.npz", zip({{"x.npy", changed_bytes, false}}));
  CHECK(ebb::open_npz(a).fingerprint() == ebb::open_npz(b).fingerprint());
  CHECK(ebb::open_npz(a).fingerprint() != ebb::open_npz(c).fingerprint());
}

TEST_CASE("npy: arrays that are no samples of one set are refused") {
  const TempFolder folder;
  const auto x = folder.write("x.npy", x_bytes);
  const auto two = folder.write("two.npy", npy("<i2", "(2,)", "abcd"));
  const auto none = folder.write("none.npy", npy("<i2", "(0, 2)", ""));
  const auto scalar = folder.write("scalar.npy", npy("<i2", "()", "ab"));
  const auto shape = LoadErrorKind::shape;
  check_refused(
      [&] {
        ebb::open_npy({{"x", x}, {"y", two}});
      },
      {shape, two, 0, "[2], but x has 3 samples"});
  check_refused([&] { ebb::open_npy({{"x", none}}); }, {shape, none, 0, "no sample"});
  check_refused([&] { ebb::open_npy({{"x", scalar}}); }, {shape, scalar, 0, "no sample"});
  CHECK_THROWS_AS(ebb::open_npy({}), std::invalid_argument);
  CHECK_THROWS_AS(ebb::open_npy({{"x", x}, {"x", x}}), std::invalid_argument);
}

TEST_CASE("npy: a file that is cut or has a bad element later is an error of the sample") {
  const TempFolder folder;
  const auto x = folder.write("x.npy", x_bytes);
  const auto y = folder.write("y.npy", y_bytes);
  const auto u = folder.write("u.npy", npy("<u8", "(3,)", numbers<std::uint64_t>({1, ~0ull, 3})));
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  const auto error_of = [&](const ebb::AnyDataset& data) {
    ebb::Loader loader(rt, data, {.batch = 1, .workers = 0, .shuffle = false});
    return ebb::test::refused([&] {
      while (loader.next().has_value()) {
      }
    });
  };
  const auto data = ebb::open_npy({{"x", x}, {"y", y}}, {.memory_max = in_file});
  std::filesystem::resize_file(y, y_bytes.size() - 1);
  const auto cut = error_of(data);
  REQUIRE(cut.has_value());
  CAPTURE(std::string(cut->what()));
  CHECK(cut->kind() == LoadErrorKind::corrupt);
  CHECK(cut->info().index == 2);
  CHECK(ebb::test::contains(cut->what(), y.string()));
  CHECK(ebb::test::contains(cut->what(), "cut short after it was opened"));
  const auto large = error_of(ebb::open_npy({{"u", u}}, {.memory_max = in_file}));
  REQUIRE(large.has_value());
  CHECK(large->kind() == LoadErrorKind::shape);
  CHECK(large->info().index == 1);
  CHECK(ebb::test::contains(large->what(), "at byte 136"));
}

TEST_CASE("npz: arrays are read, packed or not, with zip64 or not") {
  const TempFolder folder;
  const std::vector<ebb::test::ZipEntry> entries{
      {"x.npy", x_bytes, true}, {"readme.txt", "no array"}, {"y.npy", y_bytes, false}};
  for (const bool zip64 : {false, true}) {
    const auto path = folder.write("x.npz", zip(entries, zip64));
    CHECK(ebb::npz_names(path) == std::vector<std::string>{"x", "y"});
    const ebb::NpyArray y = ebb::read_npz(path, "y");
    CHECK(y.dtype() == DType::f64);
    CHECK(y.shape() == ebb::Shape{3});
    for (const Bytes memory_max : {in_file, in_memory}) {
      with_all(ebb::open_npz(path, {"y", "x"}, {.memory_max = memory_max}),
               [](const ebb::Batch& batch) {
                 CHECK(values_of<double>(batch.field(0)) == std::vector<double>{0.5, 1.5, 2.5});
                 CHECK(values_of<std::int16_t>(batch.field("x")) ==
                       std::vector<std::int16_t>{1, 2, 3, 4, 5, 6});
               });
      CHECK(ebb::open_npz(path, {}, {.memory_max = memory_max}).schema().fields.size() == 2);
    }
  }
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  const ebb::Tensor x = ebb::read_npz(rt, folder.path() / "x.npz", "x");
  CHECK(values_of<std::int16_t>(x) == std::vector<std::int16_t>{1, 2, 3, 4, 5, 6});
}

namespace {

void check_npz(const std::string& bytes, LoadErrorKind kind, std::optional<std::uint64_t> offset,
               const std::string& text) {
  const TempFolder folder;
  const auto path = folder.write("x.npz", bytes);
  check_refused([&] { ebb::open_npz(path); }, {kind, path, offset, text});
}

}  // namespace

TEST_CASE("npz: an archive that is not whole is refused at its byte") {
  const auto corrupt = LoadErrorKind::corrupt;
  const std::string good = zip({{"x.npy", x_bytes, false}});
  const std::string packed = zip({{"x.npy", x_bytes, true}});
  check_npz("", corrupt, 0, "empty");
  check_npz(x_bytes, corrupt, 0, "open_npy");
  check_npz("something else", corrupt, 0, "not a zip archive");
  for (std::size_t size = 5; size < good.size(); ++size) {
    CAPTURE(size);
    check_npz(good.substr(0, size), corrupt, size, "get it again");
  }
  std::string flipped = good;
  flipped[35 + 100] ^= 1;
  check_npz(flipped, corrupt, 0, "CRC");
  flipped = packed;
  flipped[35 + 20] ^= 1;
  check_npz(flipped, corrupt, std::nullopt, "get the archive again");
  flipped = good;
  flipped[0 + 2] ^= 1;  // the local header's magic number
  check_npz(flipped, corrupt, 0, "not where the archive says");
}

TEST_CASE("npz: sizes that lie are refused before memory is asked for") {
  const std::string packed = zip({{"x.npy", x_bytes, true}});
  const std::size_t entry = packed.find("PK\1\2");
  const auto with_size = [&](std::uint32_t bytes) {
    std::string archive = packed;
    archive.replace(entry + 24, 4, numbers<std::uint32_t>({bytes}));
    return archive;
  };
  const auto size = static_cast<std::uint32_t>(x_bytes.size());
  const long before = ebb::test::self_status("VmPeak:");
  check_npz(with_size(0xfffffff0u), LoadErrorKind::corrupt, 0, "cannot hold");
  CHECK(ebb::test::self_status("VmPeak:") - before < 64 * 1024);
  check_npz(with_size(size - 1), LoadErrorKind::corrupt, std::nullopt, "more is packed");
  check_npz(with_size(size + 1), LoadErrorKind::corrupt, std::nullopt, "less is packed");
}

TEST_CASE("npz: members that cannot be read are refused with what to do") {
  const auto shape = LoadErrorKind::shape;
  check_npz(zip({{"x.npy", x_bytes, false, 0, 1}}), shape, 0, "encrypted");
  check_npz(zip({{"x.npy", x_bytes, false, 12}}), shape, 0, "method 12");
  check_npz(zip({{"x.txt", x_bytes, false}}), shape, 0, "no array in it");
  check_npz(zip({{"x.npy", npy("|O", "(1,)", "pickle"), true}}), shape, std::nullopt,
            "x.npy: the elements ('|O')");
  const TempFolder folder;
  const auto path = folder.write("x.npz", zip({{"x.npy", x_bytes}, {"a\nb.npy", y_bytes}}));
  check_refused([&] { ebb::open_npz(path, {"y"}); },
                {shape, path, 0, "no array \"y\" in it: it has x, a?b"});
  CHECK_THROWS_AS(ebb::open_npz(path, {"x", "x"}), std::invalid_argument);
  ebb::test::check_no_file(folder.path(), [](const auto& file) { ebb::open_npz(file); });
}

TEST_CASE("npz: what NumPy writes is read") {
  const TempFolder folder;
  if (!ebb::test::run_numpy(folder.path(), R"(
x = np.arange(3000, dtype='<i4').reshape(10, 300)
y = np.arange(10)
np.savez('stored.npz', x=x, y=y)
np.savez_compressed('packed.npz', x=x, y=y)
np.save('x.npy', x)
)")) {
    MESSAGE("skipped: python3-numpy is not installed");
    return;
  }
  for (const char* const name : {"stored.npz", "packed.npz"}) {
    for (const Bytes memory_max : {in_file, in_memory}) {
      const auto data = ebb::open_npz(folder.path() / name, {"x", "y"}, {.memory_max = memory_max});
      with_all(data, [](const ebb::Batch& batch) {
        CHECK(batch.field("x").shape() == ebb::Shape{10, 300});
        const auto x = values_of<std::int32_t>(batch.field("x"));
        for (std::size_t i = 0; i < x.size(); ++i) {
          REQUIRE(x[i] == static_cast<std::int32_t>(i));
        }
        CHECK(values_of<std::int64_t>(batch.field("y"))[9] == 9);
      });
    }
  }
}
