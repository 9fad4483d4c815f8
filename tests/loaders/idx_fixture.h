// SPDX-License-Identifier: Apache-2.0
// IDX files made by hand in a folder of their own. For the tests of IDX.
#pragma once

#include "gzip_fixture.h"
#include "support/temporary_folder.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ebb::test {

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string idx_header(const std::vector<std::uint32_t>& sizes, char type = 0x08) {
  std::string header = {0, 0, type, static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    header += big_endian(size);
  }
  return header;
}

// count images of 2 x 3, the bytes of which count up, and their labels.
inline std::string images(std::uint32_t count) {
  std::string bytes = idx_header({count, 2, 3});
  for (std::uint32_t i = 0; i < count * 6; ++i) {
    bytes += static_cast<char>(i * 7);
  }
  return bytes;
}
inline std::string labels(std::uint32_t count) {
  std::string bytes = idx_header({count});
  for (std::uint32_t i = 0; i < count; ++i) {
    bytes += static_cast<char>(250 + i);
  }
  return bytes;
}

}  // namespace ebb::test
