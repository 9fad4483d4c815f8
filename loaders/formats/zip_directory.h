// SPDX-License-Identifier: Apache-2.0
// What a zip archive says at its end of where its members lie. Used by ZipFile. Any thread.
#pragma once

#include "zip_file.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ebb::inline v0::detail {

// A number of the zip format: little-endian, of bytes bytes. at + bytes lies within from.
std::uint64_t zip_number(std::span<const std::byte> from, std::size_t at, std::size_t bytes);

// Reads the central directory; no member's data reaches past the end of the file. Throws LoadError.
std::vector<ZipMember> read_zip_directory(const PositionedFile& file);

}  // namespace ebb::inline v0::detail
