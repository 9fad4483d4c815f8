// SPDX-License-Identifier: Apache-2.0
// A host that reads a common file format, linked to ebb-formats: two images of CIFAR-10 that it
// wrote itself. An install test, built with pkg-config and with CMake.
#include <ebb/ebb.h>
#include <ebb/loaders/cifar.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

int main() {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("ebb-host-" + std::to_string(getpid()));
  std::ofstream(path, std::ios::binary) << std::string(1, '\3') + std::string(3072, '\0') +
                                               std::string(1, '\4') + std::string(3072, '\xff');
  const ebb::AnyDataset data = ebb::open_cifar(path);
  std::filesystem::remove(path);
  ebb::Runtime rt;
  ebb::Loader loader(rt, data, {.batch = 2, .shuffle = false});
  std::int64_t sum = 0;
  while (const auto batch = loader.next()) {
    const auto [x, y] = batch->fields<2>();
    sum += y.span<const std::int64_t>()[0] * 10 + y.span<const std::int64_t>()[1];
    sum += x.span<const float>().back() == 1.0f ? 100 : 0;
  }
  std::printf("ebb %s read %s\n", ebb::version(), data.name().c_str());
  return sum == 134 ? 0 : 1;
}
