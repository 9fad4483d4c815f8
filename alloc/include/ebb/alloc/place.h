// SPDX-License-Identifier: Apache-2.0
// A place in the user's source: what reports name. Used by every factory and guard as a default
// argument, so that the line is the caller's. Values: any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace ebb::inline v0 {

// file points to a string that lives as long as the program's code.
struct Place {
  const char* file = "";
  std::uint32_t line = 0;

  // Returns the place of the outermost call when used as a default argument. [gc.report]
  static constexpr Place here(const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) noexcept {
    return {file, static_cast<std::uint32_t>(line)};
  }
  constexpr bool operator==(const Place&) const = default;
  // Returns whether the two name the same line: the compiler may keep a file's name several times.
  bool is_same_as(const Place& other) const noexcept {
    return line == other.line && (file == other.file || std::string_view(file) == other.file);
  }
};

}  // namespace ebb::inline v0
