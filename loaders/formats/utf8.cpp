// SPDX-License-Identifier: Apache-2.0
// UTF-8, byte by byte where it is not ASCII. Overlong forms, surrogates and what is above U+10FFFF
// show in the second byte.
#include "utf8.h"

#include <cstring>

namespace ebb::inline v0::detail {

std::size_t Utf8Check::add(std::string_view text) noexcept {
  std::size_t i = 0;
  while (i < text.size()) {
    if (wanted_ == 0) {
      std::uint64_t word = 0;
      while (i + sizeof word <= text.size()) {
        std::memcpy(&word, text.data() + i, sizeof word);
        if ((word & 0x8080808080808080u) != 0) {
          break;
        }
        i += sizeof word;
      }
      if (i == text.size()) {
        break;
      }
    }
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if (wanted_ == 0) {
      if (!begin(byte)) {
        return i;
      }
    } else {
      if (byte < low_ || byte > high_) {
        return i;
      }
      --wanted_;
      low_ = 0x80;
      high_ = 0xbf;
    }
    ++i;
  }
  return text.size();
}

bool Utf8Check::begin(std::uint8_t byte) noexcept {
  if (byte < 0x80) {
    return true;
  }
  if (byte < 0xc2 || byte > 0xf4) {
    return false;
  }
  wanted_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  low_ = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
  high_ = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
  return true;
}

}  // namespace ebb::inline v0::detail
