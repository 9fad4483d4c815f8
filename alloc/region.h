// SPDX-License-Identifier: Apache-2.0
// One reserved range of addresses: cut into ranges up to its frontier, committed in whole pages.
// Used by Space; not shared between threads.
#pragma once

#include "page_map.h"
#include "record.h"

#include <ebb/alloc/source.h>

#include <algorithm>
#include <cstddef>

namespace ebb::inline v0::detail {

inline std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) & ~(unit - 1);
}
// What is set aside for a block: zero bytes get an address of their own as well.
inline std::size_t room_for(std::size_t bytes, std::size_t granule) noexcept {
  return std::max(round_up(bytes, granule), granule);
}
inline std::byte* align_up(std::byte* address, std::size_t alignment) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return address + (round_up(value, alignment) - value);
}

struct Region {
  Region(Range reserved, std::size_t page, std::uint64_t* words) noexcept
      : range(reserved),
        page_bytes(page),
        frontier(reserved.begin),
        committed(reserved.begin),
        trimmed(words, reserved.bytes.count() / page) {
    edge.prev = &edge;
    edge.next = &edge;
  }

  bool contains(const std::byte* begin, std::size_t bytes) const noexcept {
    return begin >= range.begin && begin <= range.end() &&
           bytes <= static_cast<std::size_t>(range.end() - begin);
  }
  // The hole that ends at the frontier, or null.
  HeapRecord* tail_hole() noexcept {
    return edge.prev->kind() == RecordKind::hole ? edge.prev : nullptr;
  }

  // Numbers of the page that holds address, and of the first that begins at or after it.
  std::size_t page_down(const std::byte* address) const noexcept {
    return static_cast<std::size_t>(address - range.begin) / page_bytes;
  }
  std::size_t page_up(const std::byte* address) const noexcept {
    return (static_cast<std::size_t>(address - range.begin) + page_bytes - 1) / page_bytes;
  }
  std::byte* page_at(std::size_t page) const noexcept { return range.begin + page * page_bytes; }
  Range pages(std::size_t first, std::size_t last) const noexcept {
    return {page_at(first), Bytes{(last - first) * page_bytes}};
  }

  Region* next = nullptr;
  Range range;
  std::size_t page_bytes;
  std::byte* frontier;   // ranges lie below
  std::byte* committed;  // pages below were committed; those in trimmed have gone back
  PageMap trimmed;
  HeapRecord edge;  // joins both ends of the list of records; never a hole, so never merged with
};

}  // namespace ebb::inline v0::detail
