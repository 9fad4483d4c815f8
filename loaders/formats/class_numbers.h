// SPDX-License-Identifier: Apache-2.0
// Looking up classes by name. Used by readers with labels in words. Filled by one thread, then read
// by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ebb::inline v0::detail {

class ClassNumbers {
 public:
  // Throws std::invalid_argument, with function in front, for a name that is empty or is there
  // twice.
  ClassNumbers(const char* function, std::vector<std::string> names);

  const std::vector<std::string>& names() const noexcept { return names_; }
  std::optional<std::int64_t> find(std::string_view name) const noexcept;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept {
      return std::hash<std::string_view>{}(name);
    }
  };

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace ebb::inline v0::detail
