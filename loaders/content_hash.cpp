// SPDX-License-Identifier: Apache-2.0
// The hash behind fingerprints: a multiplication and a fold for each 8 bytes. Any thread.
#include "content_hash.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace ebb::inline v0::detail {

std::uint64_t hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t hash) noexcept {
  constexpr std::uint64_t factor = 0x9fb21c651e98df25u;
  while (!bytes.empty()) {
    std::array<std::uint8_t, 8> block{};
    const std::size_t part = std::min(block.size(), bytes.size());
    std::memcpy(block.data(), bytes.data(), part);
    bytes = bytes.subspan(part);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      word |= std::uint64_t{block[i]} << (8 * i);
    }
    hash = (hash ^ word) * factor;
    hash ^= hash >> 29;
  }
  return hash;
}

std::uint64_t hash_bytes(std::string_view text, std::uint64_t hash) noexcept {
  return hash_bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, hash);
}

}  // namespace ebb::inline v0::detail
