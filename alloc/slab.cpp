// SPDX-License-Identifier: Apache-2.0
// How slots are taken from slabs and given back. Used by the heap's owner only.
#include "slab.h"

#include <ebb/alloc/check.h>

namespace ebb::inline v0::detail {

constexpr std::array<std::uint8_t, slot_bytes_max / slot_bytes_min + 1> SlabSet::class_table = [] {
  std::array<std::uint8_t, slot_bytes_max / slot_bytes_min + 1> table{};
  for (std::size_t i = 1; i < table.size(); ++i) {
    table[i] = static_cast<std::uint8_t>(compute_class(i * slot_bytes_min));
  }
  return table;
}();

void SlabSet::add(HeapRecord& range, std::uint32_t size_class) noexcept {
  Slab* slab = slabs_.take();
  slab->range = &range;
  slab->begin = range.begin();
  slab->size_class = size_class;
  slab->slot_bytes = class_bytes(size_class);
  slab->slots = static_cast<std::uint32_t>(slab_bytes) / slab->slot_bytes;
  slab->free = slab->slots;
  for (std::uint32_t slot = 0; slot < slab->slots; ++slot) {
    slab->free_bits[slot / 64] |= std::uint64_t{1} << slot % 64;
  }
  range.set_kind(RecordKind::slab);
  range.slab = slab;
  ++empty_[size_class];
  link_last(*slab);
}

// Used up last, so that it may go back as a whole.
HeapRecord* SlabSet::became_empty(Slab& slab) noexcept {
  std::uint32_t& kept = empty_[slab.size_class];
  if (kept == empty_max) {
    unlink(slab);
    return retire(slab);
  }
  ++kept;
  if (slab.next != nullptr) {
    unlink(slab);
    link_last(slab);
  }
  return nullptr;
}

HeapRecord* SlabSet::take_empty() noexcept {
  for (std::size_t size_class = 0; size_class < class_count; ++size_class) {
    if (empty_[size_class] != 0) {
      --empty_[size_class];
      Slab& slab = *last_[size_class];
      unlink(slab);
      return retire(slab);
    }
  }
  return nullptr;
}

HeapRecord* SlabSet::retire(Slab& slab) noexcept {
  HeapRecord* range = slab.range;
  range->slab = nullptr;
  range->set_kind(RecordKind::block);
  slab.free_bits = {};
  slabs_.give(&slab);
  return range;
}

void SlabSet::link_first(Slab& slab) noexcept {
  Slab*& first = first_[slab.size_class];
  slab.prev = nullptr;
  slab.next = first;
  (first != nullptr ? first->prev : last_[slab.size_class]) = &slab;
  first = &slab;
}

void SlabSet::link_last(Slab& slab) noexcept {
  Slab*& last = last_[slab.size_class];
  slab.prev = last;
  slab.next = nullptr;
  (last != nullptr ? last->next : first_[slab.size_class]) = &slab;
  last = &slab;
}

void SlabSet::unlink(Slab& slab) noexcept {
  (slab.prev != nullptr ? slab.prev->next : first_[slab.size_class]) = slab.next;
  (slab.next != nullptr ? slab.next->prev : last_[slab.size_class]) = slab.prev;
}

bool SlabSet::is_valid() const noexcept {
  const auto sound = [](const Slab& slab, std::size_t size_class) {
    std::size_t free = 0;
    for (const std::uint64_t word : slab.free_bits) {
      free += static_cast<std::size_t>(std::popcount(word));
    }
    return slab.size_class == size_class && free == slab.free && slab.range->slab == &slab &&
           slab.range->kind() == RecordKind::slab && slab.range->size == slab_bytes;
  };
  for (std::size_t size_class = 0; size_class < class_count; ++size_class) {
    const Slab* before = nullptr;
    std::uint32_t empty = 0;
    for (const Slab* slab = first_[size_class]; slab != nullptr; slab = slab->next) {
      const bool is_empty = slab->free == slab->slots;
      // The empty ones come last.
      if (!sound(*slab, size_class) || slab->free == 0 || slab->prev != before ||
          (empty != 0 && !is_empty)) {
        return false;
      }
      empty += is_empty ? 1 : 0;
      before = slab;
    }
    if (before != last_[size_class] || empty != empty_[size_class] || empty > empty_max) {
      return false;
    }
  }
  return true;
}

}  // namespace ebb::inline v0::detail
