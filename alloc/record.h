// SPDX-License-Identifier: Apache-2.0
// The record of one range of a heap: a live block, a slab, a slot of a slab, or a hole. Outside the
// bytes and type-stable. Written by the heap's owner; a live one is read by its holder.
#pragma once

#include <ebb/alloc/block.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

struct HeapRecord;
struct PlanTable;
struct Slab;

enum class RecordKind : std::uint32_t {
  spare,    // in the record pool
  hole,     // a free range
  block,    // a range handed out
  slab,     // a range cut into slots
  slot,     // one slot of a slab, handed out
  direct,   // straight from the system (bypass)
  plan,     // a range set aside for a plan
  planned,  // one slot of a plan's range, handed out
};

// Links of one hole in one tree. A live block has another use for some of them.
struct TreeLinks {
  HeapRecord* left;
  union {
    HeapRecord* right = nullptr;
    std::uint64_t awaited;
  };
  union {
    HeapRecord* parent = nullptr;
    std::uint64_t uses;
  };
};

struct HoleLinks {
  TreeLinks by_size;
  TreeLinks by_address;
};

// data is the begin of the range. The first cache line is all that a slot needs.
struct alignas(64) HeapRecord : BlockRecord {
  union {
    Slab* slab = nullptr;  // of a slot
    PlanTable* table;      // of what is planned
  };
  // Address order within a region, blocks and holes alike. next also links spare records.
  HeapRecord* next = nullptr;
  HeapRecord* prev = nullptr;
  std::size_t size = 0;  // set aside; not kept for slots
  HoleLinks hole;

  // Links records that other threads have freed. A slot has no neighbours and a block is no hole,
  // so each has a field to spare.
  HeapRecord*& next_freed() noexcept {
    return kind() == RecordKind::slot ? next : hole.by_size.left;
  }

  // Whether the block's pages went back while it lives on. A link that names its own record is none
  // of a hole's. Set by the block's holder, read and cleared by the owner once it has the block
  // back.
  bool is_given_up() const noexcept { return hole.by_size.parent == this; }
  void mark_given_up() noexcept { hole.by_size.parent = this; }
  void clear_given_up() noexcept { hole.by_size.parent = nullptr; }

  // Of a hole: the lane that may have it at once, and the point of that lane that all others have
  // to come after. Where there are no streams, both are 0. See DeviceContext.
  std::uint32_t lane() const noexcept { return slot(); }
  std::uint64_t point() const noexcept { return bytes.count(); }
  void make_hole(std::uint32_t of_lane, std::uint64_t after) noexcept {
    bytes = Bytes{after};
    set_kind(RecordKind::hole, of_lane);
  }
  bool is_hole_of(std::uint32_t of_lane) const noexcept {
    return word() == (static_cast<std::uint32_t>(RecordKind::hole) | of_lane << 8);
  }
  void raise_point(std::uint64_t after) noexcept { bytes = std::max(bytes, Bytes{after}); }

  // Of a device's block: the lanes besides its own that use it, one bit each. Set by holders, on
  // any thread; relaxed, since the block's last release comes after all of them.
  std::uint64_t uses() const noexcept {
    return std::atomic_ref(const_cast<TreeLinks&>(hole.by_address).uses)
        .load(std::memory_order_relaxed);
  }
  void add_use(std::uint32_t of_lane) noexcept {
    std::atomic_ref(hole.by_address.uses)
        .fetch_or(std::uint64_t{1} << of_lane, std::memory_order_relaxed);
  }
  // While it waits for one of them after its release, the point. By the owner.
  std::uint64_t& awaited() noexcept { return hole.by_address.awaited; }
  void set_uses(std::uint64_t lanes) noexcept { hole.by_address.uses = lanes; }

  // Larger requests are refused before sizes are rounded up.
  static constexpr std::size_t bytes_max = std::size_t{1} << 46;

  HeapRecord() noexcept : hole{} {}

  std::byte* begin() const noexcept { return static_cast<std::byte*>(data); }
  std::byte* end() const noexcept { return begin() + size; }

  // The kind lies in the low bits of note, a slot's number above. Holders do not write it: the
  // owner reads the kinds of neighbours, whoever holds them. Relaxed: the owner turns what is
  // planned into blocks while others free them, who need not know which of the two they have.
  RecordKind kind() const noexcept { return static_cast<RecordKind>(word() & kind_bits); }
  std::uint32_t slot() const noexcept { return word() >> 8; }
  // Ends its mark, too.
  void set_kind(RecordKind kind, std::uint32_t slot = 0) noexcept {
    set_word(static_cast<std::uint32_t>(kind) | slot << 8);
  }

  // Of what lives on as another kind, without a slot: its mark stays.
  void turn_into(RecordKind kind) noexcept {
    set_word(static_cast<std::uint32_t>(kind) | (word() & marked_bit));
  }

  // Whether it is planned, and has no mark.
  bool is_only_planned() const noexcept {
    return (word() & (kind_bits | marked_bit)) == static_cast<std::uint32_t>(RecordKind::planned);
  }

  // A block that is being recorded carries its number. By the owner.
  bool is_marked() const noexcept { return (word() & marked_bit) != 0; }
  std::size_t mark() const noexcept {
    return reinterpret_cast<std::uintptr_t>(hole.by_address.left);
  }
  void set_mark(std::size_t number) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a live block has no use for the link
    hole.by_address.left = reinterpret_cast<HeapRecord*>(number);
    set_word(word() | marked_bit);
  }
  void clear_mark() noexcept { set_word(word() & ~marked_bit); }

 private:
  std::uint32_t word() const noexcept {
    return std::atomic_ref(const_cast<std::uint32_t&>(note)).load(std::memory_order_relaxed);
  }
  void set_word(std::uint32_t word) noexcept {
    std::atomic_ref(note).store(word, std::memory_order_relaxed);
  }

  static constexpr std::uint32_t kind_bits = 0x7f;
  static constexpr std::uint32_t marked_bit = 0x80;
};

static_assert(sizeof(HeapRecord) == 128);

// The blocks that live in a plan's range, by slot. Owner only.
struct PlanTable {
  HeapRecord** live = nullptr;
  std::size_t count = 0;

  void add(HeapRecord& record, std::uint32_t slot) noexcept {
    live[slot] = &record;
    ++count;
  }
  void remove(const HeapRecord& record) noexcept {
    live[record.slot()] = nullptr;
    --count;
  }
};

}  // namespace ebb::inline v0::detail
