// SPDX-License-Identifier: Apache-2.0
// Whether bytes are UTF-8 (RFC 3629), as they come. Used by open_lines. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ebb::inline v0::detail {

class Utf8Check {
 public:
  // Returns the place of the first byte that cannot be, or text.size(); afterwards only a new check
  // goes on.
  std::size_t add(std::string_view text) noexcept;
  // Returns whether no character is begun and not ended.
  bool complete() const noexcept { return wanted_ == 0; }

 private:
  bool begin(std::uint8_t byte) noexcept;

  unsigned wanted_ = 0;      // bytes that are to follow
  std::uint8_t low_ = 0x80;  // what the next of them may be
  std::uint8_t high_ = 0xbf;
};

// Returns whether byte goes on with a character.
constexpr bool is_utf8_rest(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}

}  // namespace ebb::inline v0::detail
