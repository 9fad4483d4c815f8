// SPDX-License-Identifier: Apache-2.0
// A fast hash of long contents, for fingerprints: it tells data sets apart, it does not resist an
// attacker. Its values never change, since saved positions hold them. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ebb::inline v0::detail {

// Returns the hash of what came before, of which hash is the result, and bytes. Two calls give
// another value than one for both parts, unless the first part is a multiple of 8 bytes.
std::uint64_t hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t hash) noexcept;
std::uint64_t hash_bytes(std::string_view text, std::uint64_t hash) noexcept;

// Mixes one number (an option, a size) into a hash.
constexpr std::uint64_t hash_number(std::uint64_t number, std::uint64_t hash) noexcept {
  return (hash * 0x100000001b3u) ^ number;
}

}  // namespace ebb::inline v0::detail
