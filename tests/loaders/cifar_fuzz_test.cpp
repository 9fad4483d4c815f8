// SPDX-License-Identifier: Apache-2.0
// Damaged files of CIFAR: each is refused by a LoadError that names the file, or is still whole.
#include "fuzz_fixture.h"
#include "gzip_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/cifar.h>

using ebb::test::fuzz;

TEST_CASE("cifar: whatever is done to a file, it is refused by name or it is whole") {
  const ebb::test::TempFolder folder;
  const std::string plain = "\2" + std::string(3072, 'a') + "\3" + std::string(3072, 'b');
  for (const int classes : {10, 100}) {
    const std::string bytes = classes == 10 ? plain : "\1\2" + std::string(3072, 'c');
    fuzz("cifar", {bytes, ebb::test::gzip(bytes)}, [&](const std::string& file) {
      const ebb::AnyDataset data = ebb::open_cifar(folder.write("x", file), {.classes = classes});
      REQUIRE(data.size() > 0);
    });
  }
}
