// SPDX-License-Identifier: Apache-2.0
// Names out of files, as they may stand in the one line of a message. Any thread.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace ebb::inline v0::detail {

// Returns at most the first 80 bytes of text, with "?" for what would end or disturb the line.
inline std::string printable(std::string_view text) {
  std::string line(text.substr(0, 80));
  std::replace_if(
      line.begin(), line.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, '?');
  return line + (text.size() > line.size() ? "..." : "");
}

}  // namespace ebb::inline v0::detail
