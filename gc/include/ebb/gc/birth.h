// SPDX-License-Identifier: Apache-2.0
// What a storage remembers of how it was made: a place, and a note that only its maker can read.
// gc copies the note and hands it back for printing; the runtime puts shape and dtype in it.
#pragma once

#include <ebb/alloc/place.h>

#include <array>
#include <cstddef>

namespace ebb::inline v0 {

inline constexpr std::size_t birth_note_bytes = 48;

struct BirthNote {
  // Not filled: each storage is made with a note, and most of what has none is made in a hurry.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init,modernize-use-equals-default)
  BirthNote() noexcept {}

  std::array<std::byte, birth_note_bytes> bytes;
  // Writes at most size characters (no terminator) that describe the note, and returns how many.
  // May be called on any thread. Null: the note says nothing.
  std::size_t (*format)(const std::byte* note, char* buffer, std::size_t size) noexcept = nullptr;
};

struct Birth {
  Place place;
  BirthNote note{};
};

}  // namespace ebb::inline v0
