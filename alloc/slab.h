// SPDX-License-Identifier: Apache-2.0
// Slabs: ranges of 8 KiB cut into equal slots for sizes up to 4 KiB, the lowest free slot first.
// On the traces of libtorch's training 16 KiB reserves up to 2 % more of the live peak.
// Bitmaps lie outside the slabs. Used by Heap's owner only.
#pragma once

#include "meta_chunks.h"
#include "record.h"
#include "typed_pool.h"

#include <ebb/alloc/check.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

inline constexpr std::size_t slab_bytes = 8192;
inline constexpr std::size_t slot_bytes_max = 4096;
inline constexpr std::size_t slot_bytes_min = 64;

struct Slab {
  HeapRecord* range = nullptr;
  std::byte* begin = nullptr;
  Slab* prev = nullptr;  // among the slabs of a class that have free slots
  Slab* next = nullptr;
  std::uint32_t slot_bytes = 0;
  std::uint32_t slots = 0;
  std::uint32_t free = 0;
  std::uint32_t size_class = 0;
  std::array<std::uint64_t, slab_bytes / slot_bytes_min / 64> free_bits{};
};

class SlabSet {
 public:
  explicit SlabSet(MetaChunks& meta) noexcept : slabs_(meta) {}

  // Four classes per doubling, multiples of 64; size is a multiple of 64 up to slot_bytes_max.
  static std::uint32_t class_of(std::size_t size) noexcept {
    return class_table[size / slot_bytes_min];
  }
  static constexpr std::uint32_t compute_class(std::size_t size) noexcept {
    const auto granules = static_cast<std::uint32_t>(size / slot_bytes_min);
    if (granules <= 8) {
      return granules - 1;
    }
    const auto exponent = static_cast<std::uint32_t>(std::bit_width(granules - 1)) - 1;
    return (exponent - 3) * 4 + 8 + ((granules - 1) >> (exponent - 2)) % 4;
  }
  static std::uint32_t class_bytes(std::uint32_t size_class) noexcept {
    if (size_class < 8) {
      return (size_class + 1) * static_cast<std::uint32_t>(slot_bytes_min);
    }
    const std::uint32_t step = size_class % 4 + 5;
    return (step << (size_class / 4 - 1)) * static_cast<std::uint32_t>(slot_bytes_min);
  }

  bool has_room(std::uint32_t size_class) const noexcept { return first_[size_class] != nullptr; }
  // Makes sure that add can be called; false when the system refuses memory.
  bool ensure() noexcept { return slabs_.ensure(1); }
  // Cuts a range of slab_bytes into slots of a class that has no room.
  void add(HeapRecord& range, std::uint32_t size_class) noexcept;
  // Makes slot the record of the lowest free slot of a slab of the class, which has room. Returns
  // where the slot is.
  std::byte* take(std::uint32_t size_class, HeapRecord& slot) noexcept {
    Slab& slab = *first_[size_class];
    if (slab.free == slab.slots) {
      --empty_[size_class];
    }
    std::uint32_t word = 0;
    while (slab.free_bits[word] == 0) {
      ++word;
    }
    const auto number =
        word * 64 + static_cast<std::uint32_t>(std::countr_zero(slab.free_bits[word]));
    slab.free_bits[word] &= slab.free_bits[word] - 1;
    if (--slab.free == 0) {
      unlink(slab);
    }
    slot.slab = &slab;
    slot.set_kind(RecordKind::slot, number);
    return slab.begin + std::size_t{number} * slab.slot_bytes;
  }
  // Takes slot back. Returns the range of a slab that is no longer needed, else null. A few empty
  // slabs per class are kept, so that blocks that come and go cost no slab each time; they are
  // given up before the heap grows.
  HeapRecord* give(const HeapRecord& slot) noexcept {
    Slab& slab = *slot.slab;
    const std::uint32_t number = slot.slot();
    EBB_ASSERT((slab.free_bits[number / 64] >> number % 64 & 1) == 0);
    slab.free_bits[number / 64] |= std::uint64_t{1} << number % 64;
    if (++slab.free == 1) {
      link_first(slab);
    }
    return slab.free == slab.slots ? became_empty(slab) : nullptr;
  }
  // Returns the range of an empty slab that was kept, or null when there is none.
  HeapRecord* take_empty() noexcept;

  bool is_valid() const noexcept;

 private:
  static constexpr std::size_t class_count = 20;
  static constexpr std::uint32_t empty_max = 32;  // kept per class

  static const std::array<std::uint8_t, slot_bytes_max / slot_bytes_min + 1> class_table;

  void link_first(Slab& slab) noexcept;
  void link_last(Slab& slab) noexcept;
  void unlink(Slab& slab) noexcept;
  HeapRecord* became_empty(Slab& slab) noexcept;
  HeapRecord* retire(Slab& slab) noexcept;

  std::array<Slab*, class_count> first_{};
  std::array<Slab*, class_count> last_{};
  std::array<std::uint32_t, class_count> empty_{};  // at the end of the list
  TypedPool<Slab> slabs_;
};

}  // namespace ebb::inline v0::detail
