// SPDX-License-Identifier: Apache-2.0
// One IDX file of unsigned bytes, checked to the last byte. Used by open_idx. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ebb::inline v0::detail {

struct IdxFile {
  std::string source;
  std::vector<std::uint64_t> sizes;  // of the dimensions; none is 0
  std::unique_ptr<std::uint8_t[]> data;
  std::size_t bytes = 0;

  std::span<const std::uint8_t> all() const noexcept { return {data.get(), bytes}; }
};

// Reads a file of exactly dims dimensions; role ("images") is for messages. Throws LoadError, with
// file and offset, for anything else. Sizes that the file cannot hold are refused before memory is
// asked for.
IdxFile read_idx(std::string_view function, const std::filesystem::path& path, std::size_t dims,
                 std::string_view role);

}  // namespace ebb::inline v0::detail
