// SPDX-License-Identifier: Apache-2.0
// A plan of one kind of iteration: the sequence that was recorded, with an address for each block
// and what a look at the blocks below it in time has to show before the address may be had.
// Not changed once made, but for the names of files that slots were last asked with; any thread.
// [alloc.replay]
#pragma once

#include <ebb/alloc/replay.h>
#include <ebb/alloc/sequence.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ebb::inline v0::detail {

// Where the allocation of one number goes. A line of the cache each.
struct alignas(64) PlannedSlot {
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};

  // As asked for; nowhere: the quick way does not take it.
  std::uint64_t bytes = nowhere;
  // Relaxed: any of the names that the file has will do, and the one that came last is the
  // quickest to compare.
  // Null where the quick way takes nothing: bytes alone would let a request of so many pass.
  mutable std::atomic<const char*> file{nullptr};
  std::uint32_t line = 0;
  std::uint32_t number = 0;  // its own
  // The slots that had the addresses last before this one does, each at least a part of them. In
  // place of none, the number of slots, where nobody ever lives.
  std::array<std::uint32_t, 2> predecessors{};
  std::uint64_t offset = nowhere;
  std::uint64_t size = 0;  // set aside
  std::uint32_t more = 0;  // predecessors beyond two
  std::uint32_t more_begin = 0;

  bool is_at(const Place& place) const noexcept {
    return line == place.line && file.load(std::memory_order_relaxed) == place.file;
  }
};

class IterationPlan {
 public:
  static constexpr std::size_t slots_max = std::size_t{1} << 24;  // what a record's number holds

  // Plans a sequence; offsets are multiples of granule. Where a plan of a sequence that begins
  // alike is given, the part in common keeps its addresses if that costs next to nothing, so that
  // the one can take over from the other. Throws std::bad_alloc.
  static std::shared_ptr<const IterationPlan> make(AllocationSequence sequence, std::size_t granule,
                                                   const PlanSetOptions& options,
                                                   const IterationPlan* relative,
                                                   const std::function<bool()>& cancel);
  // Makes a plan of given offsets, one for each entry, PlannedSlot::nowhere outside. Throws
  // std::invalid_argument for offsets at which blocks that live together overlap.
  static std::shared_ptr<const IterationPlan> with_offsets(AllocationSequence sequence,
                                                           std::size_t granule,
                                                           std::vector<std::uint64_t> offsets);
  // Returns whether a block has its place in a plan of that granule, and not outside.
  static bool places(const SequenceEntry& entry, std::size_t granule) noexcept {
    return entry.kind != AllocationKind::outliving && std::size_t{1} << entry.align_log2 <= granule;
  }

  std::size_t size() const noexcept { return sequence_.size(); }
  // One more than size(): the last fits nothing.
  const PlannedSlot* slots() const noexcept { return slots_.get(); }
  const AllocationSequence& sequence() const noexcept { return sequence_; }
  const PlanInfo& info() const noexcept { return info_; }
  std::size_t height() const noexcept { return info_.height.count(); }

  // All predecessors of a slot, see PlannedSlot.
  std::span<const std::uint32_t> more_predecessors(const PlannedSlot& slot) const noexcept {
    return {more_.data() + slot.more_begin, slot.more};
  }
  // The slots that have an address, lowest first.
  const std::vector<std::uint32_t>& by_offset() const noexcept { return by_offset_; }

  // Returns whether the first count allocations of both repeat each other.
  bool begins_as(const IterationPlan& other, std::size_t count) const noexcept {
    return count <= size() && count <= other.size() && prefixes_[count] == other.prefixes_[count];
  }
  // Returns whether entry i is what is being allocated. Lets the quick way know its place.
  bool fits(std::size_t i, const SequenceEntry& entry) const noexcept;
  // Returns whether the two sequences are those of the same allocations, whenever freed.
  bool repeats(const AllocationSequence& sequence) const noexcept;

 private:
  IterationPlan(AllocationSequence sequence, std::size_t granule,
                std::span<const std::uint64_t> offsets, const PlanInfo& info);
  void set_slots(std::span<const std::uint64_t> offsets, std::size_t granule);
  void find_predecessors();
  // Throws std::invalid_argument where one lives when its slot is to have its addresses.
  void check_predecessors() const;

  AllocationSequence sequence_;
  PlanInfo info_;
  std::unique_ptr<PlannedSlot[]> slots_;
  std::vector<std::uint32_t> more_;
  std::vector<std::uint32_t> by_offset_;
  std::vector<std::uint64_t> prefixes_;  // by count: a hash of the first entries
};

// Returns how many allocations the two have in common before they differ.
std::size_t count_common(const AllocationSequence& a, const AllocationSequence& b) noexcept;

// Returns a hash of what repeats() compares, going on from that of the entries before.
std::uint64_t hash_entry(std::uint64_t before, const SequenceEntry& entry) noexcept;

}  // namespace ebb::inline v0::detail
