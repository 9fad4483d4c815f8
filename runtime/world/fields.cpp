// SPDX-License-Identifier: Apache-2.0
#include "fields.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace ebb::world {

namespace {

template <class Number>
std::optional<Number> number_of(std::string_view text) noexcept {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

}  // namespace

std::vector<std::string_view> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  return number_of<std::uint64_t>(text);
}

std::string check_whole_number(const std::string& text) {
  return whole_number(text) ? "" : "no whole number: " + text;
}

std::string check_real_number(const std::string& text, double most, const char* name) {
  const std::optional<double> value = number_of<double>(text);
  return value && *value >= 0 && *value <= most ? "" : "no " + std::string(name) + ": " + text;
}

}  // namespace ebb::world
