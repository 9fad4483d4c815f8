// SPDX-License-Identifier: Apache-2.0
// Files of tokens made by hand. For the tests of tokens.
#pragma once

#include "npy_fixture.h"

#include <cstdint>
#include <string>

namespace ebb::test {

// Tokens begin, begin + 1, ... of type T.
template <class T>
std::string tokens(std::uint32_t begin, std::uint32_t count) {
  std::string bytes;
  for (std::uint32_t i = 0; i < count; ++i) {
    bytes += bytes_of_number(static_cast<T>(begin + i));
  }
  return bytes;
}

inline std::string llm_c(std::uint32_t magic, std::uint32_t version, std::uint32_t count,
                         const std::string& data) {
  return numbers<std::uint32_t>({magic, version, count}) + std::string(253 * 4, '\0') + data;
}

inline std::string llm_c_u16(std::uint32_t begin, std::uint32_t count) {
  return llm_c(20240520, 1, count, tokens<std::uint16_t>(begin, count));
}

inline std::string llm_c_u32(std::uint32_t begin, std::uint32_t count) {
  return llm_c(20240801, 7, count, tokens<std::uint32_t>(begin, count));
}

}  // namespace ebb::test
