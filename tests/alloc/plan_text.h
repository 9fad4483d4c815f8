// SPDX-License-Identifier: Apache-2.0
// Saved plans, written from what the format says. Used by the tests of PlanSet::load. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ebb::test {

// FNV-1a of 64 bits, as the format says.
inline std::string with_checksum(const std::string& body) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : body) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return body + "checksum " + digits.data() + "\n";
}

// Of a set that was made without a place.
inline constexpr const char* head = "ebb-plans 1\ngranule 64\nplace 0 \n";

inline std::string text_of(const std::string& plans) {
  return with_checksum(head + plans);
}

// All kinds; entry 1 takes the address of entry 0.
inline constexpr const char* all_kinds =
    "plan 2 4\n"
    "file train.cpp\n"
    "file a b\\x5c\\x0a\xc3\xa9\n"
    "entry 1000 0 12 1 block 0 0\n"
    "entry 640 1 13 4 block 6 0\n"
    "entry 0 1 4294967295 4 outliving 3 -\n"
    "entry 4096 0 14 4 iteration 6 640\n";

}  // namespace ebb::test
