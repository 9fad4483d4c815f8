// SPDX-License-Identifier: Apache-2.0
// Tar archives made by hand. For the tests of archives.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace ebb::test {

// A header as ustar has it; what a test needs otherwise it overwrites, and calls seal.
struct TarEntry {
  std::string name;
  std::string bytes = {};
  char type = '0';
  std::string prefix = {};
  std::string size_field = {};  // instead of the size in octal
};

// Writes the checksum of the header at the beginning of block.
inline void seal(std::string& block) {
  std::memset(block.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) {
    sum += static_cast<unsigned char>(block[i]);
  }
  std::snprintf(block.data() + 148, 7, "%06o", sum);
}

inline std::string tar_entry(const TarEntry& entry) {
  std::string block(512, '\0');
  const auto put = [&block](std::size_t at, const std::string& text) {
    std::memcpy(block.data() + at, text.data(), text.size());
  };
  char size[13] = {};
  std::snprintf(size, sizeof size, "%011llo", static_cast<unsigned long long>(entry.bytes.size()));
  put(0, entry.name.substr(0, 100));
  put(100, "0000644");
  put(124, entry.size_field.empty() ? size : entry.size_field);
  put(136, "00000000000");
  block[156] = entry.type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(345, entry.prefix);
  seal(block);
  const std::size_t padding = (512 - entry.bytes.size() % 512) % 512;
  return block + entry.bytes + std::string(padding, '\0');
}

inline std::string tar_end() {
  return std::string(1024, '\0');
}

// A record of an extended header.
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) {
    ++length;
  }
  return std::to_string(length) + rest;
}

}  // namespace ebb::test
