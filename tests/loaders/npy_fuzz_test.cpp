// SPDX-License-Identifier: Apache-2.0
// Damaged npy and npz files: each is refused by a LoadError that names the file, or is still whole.
#include "fuzz_fixture.h"
#include "loader_fixture.h"
#include "npy_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/npy.h>

using ebb::test::fuzz;
using ebb::test::npy;
using ebb::test::zip;

namespace {

// Reads every byte.
std::uint64_t sum_of(const ebb::NpyArray& array) {
  std::uint64_t sum = 0;
  for (const std::byte byte : array.bytes()) {
    sum += std::to_integer<std::uint64_t>(byte);
  }
  return sum;
}

// Loads every sample.
void load_all(const ebb::AnyDataset& data) {
  ebb::Runtime rt({.executor = ebb::test::executor_choice()});
  ebb::Loader loader(rt, data, {.batch = 2, .workers = 0, .shuffle = false});
  while (loader.next().has_value()) {
  }
}

}  // namespace

TEST_CASE("npy: whatever is done to a file, it is refused by name or it is whole") {
  const ebb::test::TempFolder folder;
  const std::vector<std::string> valid{npy("<f4", "(3, 2)", std::string(24, 'x')),
                                       npy(">u2", "(2, 2, 2)", std::string(16, 'y'), true),
                                       npy("|b1", "(5,)", std::string(5, '\2')),
                                       npy("<u8", "(3,)", std::string(24, '\1'))};
  std::uint64_t sum = 0;
  std::uint64_t round = 0;
  fuzz("npy", valid, [&](const std::string& bytes) {
    const auto path = folder.write("x", bytes);
    sum += sum_of(ebb::read_npy(path));
    const auto data = ebb::open_npy({{"x", path}}, {.memory_max = ebb::Bytes{bytes.size() % 50}});
    if (++round % 50 == 0) {
      load_all(data);
    }
  });
  CHECK(sum > 0);
}

TEST_CASE("npz: whatever is done to an archive, it is refused by name or it is whole") {
  const ebb::test::TempFolder folder;
  const std::string x = npy("<f4", "(3, 2)", std::string(24, 'x'));
  const std::string y = npy("<i8", "(3,)", std::string(24, 'y'));
  const std::vector<std::string> valid{zip({{"x.npy", x, true}, {"y.npy", y, false}}),
                                       zip({{"x.npy", x, false}, {"y.npy", y, true}}, true)};
  std::uint64_t round = 0;
  fuzz("npz", valid, [&](const std::string& bytes) {
    const auto path = folder.write("x", bytes);
    const auto data = ebb::open_npz(path, {}, {.memory_max = ebb::Bytes{bytes.size() % 50}});
    if (++round % 50 == 0) {
      load_all(data);
    }
  });
}
