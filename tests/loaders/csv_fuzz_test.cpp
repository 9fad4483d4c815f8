// SPDX-License-Identifier: Apache-2.0
// Damaged CSV files and texts: each is refused by a LoadError that names the file, or is read to
// its last sample.
#include "fuzz_fixture.h"
#include "gzip_fixture.h"
#include "loader_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/csv.h>
#include <ebb/loaders/text.h>

using ebb::test::fuzz;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::ExecutorKind::jthread, .log = log.hook()}};

  // Loads every sample.
  void read_all(const ebb::AnyDataset& data) {
    ebb::Loader loader(rt, data, {.batch = 4, .workers = 0, .shuffle = false});
    std::uint64_t samples = 0;
    while (const auto batch = loader.next()) {
      samples += batch->indices().size();
    }
    REQUIRE(samples == data.size());
  }
};

}  // namespace

TEST_CASE("csv: whatever is done to a file, it is refused by name or read to its end") {
  const ebb::test::TempFolder folder;
  Rig rig;
  const std::string bytes =
      "\xef\xbb\xbf"
      "a,b,kind\r\n1,2.5,cat\r\n-3e2,4,\"dog, \"\"big\"\"\"\n5,,\"two\nlines\"\n\n7,8,cat";
  const ebb::CsvOptions options{
      .fields = {{.name = "x", .columns = {"b", "a"}},
                 {.name = "y", .columns = {"kind"}, .dtype = ebb::DType::u8, .classes = true}},
      .missing = 0};
  fuzz("csv", {bytes, ebb::test::gzip(bytes)}, [&](const std::string& file) {
    rig.read_all(ebb::open_csv(folder.write("x", file), options));
  });
}

TEST_CASE("lines: whatever is done to a file, it is refused by name or read to its end") {
  const ebb::test::TempFolder folder;
  Rig rig;
  const std::string bytes = "\xef\xbb\xbfone\r\n\ntwo \xe2\x82\xac\nthree and a half\n\xc3\xa9";
  fuzz("lines", {bytes, ebb::test::gzip(bytes)}, [&](const std::string& file) {
    const auto path = folder.write("x", file);
    rig.read_all(ebb::open_lines(path, {.max_length = 12, .cut_long = true, .keep_invalid = true}));
    rig.read_all(ebb::open_lines(path, {.max_length = 40}));
  });
}

TEST_CASE("text: whatever is done to a file, it is refused by name or read to its end") {
  const ebb::test::TempFolder folder;
  Rig rig;
  const std::string bytes = "to be, or not to be, that is the question";
  fuzz("text", {bytes, ebb::test::gzip(bytes)}, [&](const std::string& file) {
    const auto path = folder.write("x", file);
    rig.read_all(ebb::open_text(path, {.window = 8, .random = true, .compact = true}));
    rig.read_all(ebb::open_text(path, {.window = 20, .stride = 3}));
  });
}
