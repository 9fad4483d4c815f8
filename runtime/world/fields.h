// SPDX-License-Identifier: Apache-2.0
// The fields of a CSV line, and the numbers in them and on the command line. Used by the tools of
// the ebb command. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::world {

// Returns the fields between the commas of line, which must outlive them. There is no quoting.
std::vector<std::string_view> split_fields(std::string_view line);

// Returns the number that all of text is, nothing where it is no whole number from 0 to 2^64 - 1.
std::optional<std::uint64_t> whole_number(std::string_view text) noexcept;

// Checks of CLI11, which itself takes -1 for 2^64 - 1: empty where text is good, else what is
// wrong.
std::string check_whole_number(const std::string& text);
// A number from 0 to most, named so in the complaint.
std::string check_real_number(const std::string& text, double most, const char* name);

}  // namespace ebb::world
