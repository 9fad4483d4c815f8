// SPDX-License-Identifier: Apache-2.0
// One 512-byte header of a tar archive: v7, ustar, or GNU's. Used by the tar reader. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ebb::inline v0::detail {

inline constexpr std::size_t tar_block_bytes = 512;
using TarBlock = std::array<std::byte, tar_block_bytes>;

// What is wrong with a header, and at which byte of it.
struct TarMistake {
  std::size_t at = 0;
  std::string text;
};

struct TarHeader {
  std::string name = {};  // as it is written, prefix and all
  std::uint64_t bytes = 0;
  char type = '0';
};

bool is_zero(std::span<const std::byte> bytes) noexcept;

// Reads a header, checksum and all. Returns none and sets mistake for what is none.
std::optional<TarHeader> read_tar_header(const TarBlock& block, TarMistake& mistake);

// The records of an extended header (pax) that say what follows.
struct PaxRecords {
  std::optional<std::string> path;
  std::optional<std::uint64_t> bytes;
  bool is_sparse = false;
};
// Returns none and sets mistake for what is no list of records.
std::optional<PaxRecords> read_pax(std::string_view text, TarMistake& mistake);

// Returns a member's path without "./", doubled slashes and the last one. Returns none and sets
// mistake where it could lead out of the archive: absolute, with "..", or with a zero byte; and for
// one that is empty.
std::optional<std::string> clean_tar_path(std::string_view path, TarMistake& mistake);

}  // namespace ebb::inline v0::detail
