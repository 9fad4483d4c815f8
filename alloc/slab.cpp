// SPDX-License-Identifier: Apache-2.0
// How slots are taken from slabs and given back. Used by the heap's owner only.
#include "slab.h"

#include <ebb/alloc/check.h>

#include <utility>

namespace ebb::inline v0::detail {

void SlabSet::add(HeapRecord& range, std::uint32_t size_class) noexcept {
  Slab* slab = slabs_.take();
  slab->range = &range;
  slab->size_class = size_class;
  slab->slot_bytes = class_bytes(size_class);
  slab->slots = static_cast<std::uint32_t>(slab_bytes) / slab->slot_bytes;
  slab->free = slab->slots;
  for (std::uint32_t slot = 0; slot < slab->slots; ++slot) {
    slab->free_bits[slot / 64] |= std::uint64_t{1} << slot % 64;
  }
  range.set_kind(RecordKind::slab);
  range.slab = slab;
  spare_[size_class] = slab;
}

void SlabSet::take(std::uint32_t size_class, HeapRecord& slot) noexcept {
  Slab* slab = partial_[size_class];
  if (slab == nullptr) {
    slab = spare_[size_class];
    spare_[size_class] = nullptr;
    link(*slab);
  }
  std::uint32_t word = 0;
  while (slab->free_bits[word] == 0) {
    ++word;
  }
  const auto number =
      word * 64 + static_cast<std::uint32_t>(std::countr_zero(slab->free_bits[word]));
  slab->free_bits[word] &= slab->free_bits[word] - 1;
  if (--slab->free == 0) {
    unlink(*slab);
  }
  slot.data = slab->range->begin() + number * slab->slot_bytes;
  slot.slab = slab;
  slot.set_kind(RecordKind::slot, number);
}

HeapRecord* SlabSet::give(const HeapRecord& slot) noexcept {
  Slab& slab = *slot.slab;
  const std::uint32_t number = slot.slot();
  EBB_ASSERT((slab.free_bits[number / 64] >> number % 64 & 1) == 0);
  slab.free_bits[number / 64] |= std::uint64_t{1} << number % 64;
  if (++slab.free == 1) {
    link(slab);
  }
  if (slab.free != slab.slots) [[likely]] {
    return nullptr;
  }
  unlink(slab);
  Slab*& spare = spare_[slab.size_class];
  if (spare == nullptr) {
    spare = &slab;
    return nullptr;
  }
  // The lower one stays: what goes back should be near the frontier.
  Slab* higher = spare->range->begin() < slab.range->begin() ? &slab : std::exchange(spare, &slab);
  return retire(*higher);
}

HeapRecord* SlabSet::take_spare() noexcept {
  for (Slab*& spare : spare_) {
    if (spare != nullptr) {
      return retire(*std::exchange(spare, nullptr));
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

void SlabSet::link(Slab& slab) noexcept {
  Slab*& head = partial_[slab.size_class];
  slab.prev = nullptr;
  slab.next = head;
  if (head != nullptr) {
    head->prev = &slab;
  }
  head = &slab;
}

void SlabSet::unlink(Slab& slab) noexcept {
  (slab.prev != nullptr ? slab.prev->next : partial_[slab.size_class]) = slab.next;
  if (slab.next != nullptr) {
    slab.next->prev = slab.prev;
  }
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
    const Slab* spare = spare_[size_class];
    if (spare != nullptr && (!sound(*spare, size_class) || spare->free != spare->slots)) {
      return false;
    }
    for (const Slab* slab = partial_[size_class]; slab != nullptr; slab = slab->next) {
      if (!sound(*slab, size_class) || slab->free == 0 || slab->free == slab->slots ||
          (slab->next != nullptr && slab->next->prev != slab)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace ebb::inline v0::detail
