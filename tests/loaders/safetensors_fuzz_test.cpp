// SPDX-License-Identifier: Apache-2.0
// Damaged safetensors files: each is refused by a LoadError that names the file, or is still whole.
#include "fuzz_fixture.h"
#include "loader_fixture.h"
#include "npy_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/safetensors.h>

TEST_CASE("safetensors: whatever is done to a file, it is refused by name or it is whole") {
  const ebb::test::TempFolder folder;
  const std::string header =
      R"({"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("__metadata__":{"a":"b"},"u":{"dtype":"U16","shape":[3],"data_offsets":[8,14]}})";
  const std::string valid =
      ebb::test::bytes_of_number<std::uint64_t>(header.size()) + header + std::string(14, 'x');
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  double sum = 0;
  ebb::test::fuzz("safetensors", {valid}, [&](const std::string& bytes) {
    const auto path = folder.write("x", bytes);
    const ebb::Safetensors file = ebb::read_safetensors(path, {.copy = bytes.size() % 2 == 0});
    for (const ebb::SafetensorsEntry& entry : file.entries()) {
      const ebb::Tensor tensor = file.tensor(rt, entry.name);
      for (std::size_t i = 0; i < tensor.bytes().count(); ++i) {
        sum += static_cast<const unsigned char*>(tensor.storage().data())[i];
      }
    }
  });
  CHECK(sum > 0);
}
