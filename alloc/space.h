// SPDX-License-Identifier: Apache-2.0
// The address space of one heap: regions of a source cut into blocks and holes, best fit, pages
// committed and given back. Used by Heap's owner only.
#pragma once

#include "budget.h"
#include "heap_counters.h"
#include "hole_index.h"
#include "meta_chunks.h"
#include "record.h"
#include "region.h"
#include "typed_pool.h"

#include <ebb/alloc/device_context.h>
#include <ebb/alloc/source.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace ebb::inline v0::detail {

// Sizes and addresses that go in are multiples of granule(). A refusal is null and changes nothing
// but how many idle pages are committed. Ranges come out poisoned; the heap unpoisons.
class Space {
 public:
  // order: of the device whose streams use the memory, or null.
  Space(Source& source, MetaChunks& meta, Budget& budget, HeapCounters& counters,
        std::size_t reservation, DeviceContext* order) noexcept;
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  Space(Space&&) = delete;
  Space& operator=(Space&&) = delete;
  ~Space();

  // Reserves the first region. False when the system refuses it.
  bool open() noexcept { return add_region(1) != nullptr; }

  // Makes sure that a lane's memory can be taken and given; false when the system refuses memory.
  bool open_lane(std::uint32_t lane) noexcept;

  // A range that lane may have, from the smallest hole of its own that fits, the lowest among
  // equals, else from one of another lane that it comes after; null when there is none that has the
  // pages for it, or none among the first ones while many are without.
  HeapRecord* take(std::size_t size, std::size_t align, std::uint32_t lane = 0) noexcept;
  // A range that pages are committed for, after take was null: in a hole whose pages have gone
  // back, else at a frontier.
  HeapRecord* take_growing(std::size_t size, std::size_t align, std::uint32_t lane = 0) noexcept;
  // The range at begin, when it is free, and lane may have it.
  HeapRecord* take_at(std::byte* begin, std::size_t size, std::uint32_t lane = 0) noexcept;
  // Makes the range of record, all of it in one hole, what the record's kind says. Takes no record
  // more than records().ensure(1) promises.
  void put_back(HeapRecord& record) noexcept;
  // Makes a range a hole again, joined with the holes of its lane beside it. Other lanes may have
  // it once they come after the point.
  void give(HeapRecord& range, std::uint32_t lane = 0, std::uint64_t point = 0) noexcept;
  // The same for all that is queued on the lane by now.
  void give_now(HeapRecord& range, std::uint32_t lane) noexcept {
    give(range, lane, order_ == nullptr ? 0 : order_->next_point(lane));
  }
  // Makes the holes that lane may have its own, so that they join. Returns whether there were any
  // of others.
  bool unite(std::uint32_t lane) noexcept;
  // Waits until no device uses the memory any more; false: that takes longer than patience.
  bool wait_until_quiet(std::chrono::seconds patience = std::chrono::seconds(10)) noexcept;

  // Whether [begin, begin + bytes) lies in one region, in a hole or beyond the frontier.
  bool is_free(const std::byte* begin, std::size_t bytes) const noexcept;
  // Gives the pages of a large range back that nobody uses any more. Changes no figure, so that any
  // thread may call it; only for the ranges of a space that takes and gives nothing any more.
  void discard(const HeapRecord& range) noexcept;
  // Gives up what lies under a block that lives on: whole pages go back, the rest is zeroed.
  // Returns the bytes that went. Any thread that holds the block.
  Bytes give_up(HeapRecord& block) noexcept;
  // Takes over into the figures that a block's pages were given up; before it is given.
  void note_given_up(HeapRecord& block) noexcept;
  // Gives whole pages of holes back, and lowers frontiers to the last block. Returns the bytes.
  std::size_t trim() noexcept;
  // Whether the last trim left whole pages of holes that a device was not done with.
  bool has_busy_pages() const noexcept { return has_busy_pages_; }

  // The largest range that there is without growing: a hole, or what is committed at the end of a
  // region.
  std::size_t largest_hole() const noexcept;
  // What all sizes and addresses are multiples of: the device's default alignment.
  std::size_t granule() const noexcept { return granule_; }
  std::size_t page() const noexcept { return page_; }
  DeviceContext* order() const noexcept { return order_; }
  // Whether this thread captures on the device: then no pages are mapped, and none go back.
  bool is_capturing() const noexcept { return order_ != nullptr && order_->is_capturing(); }
  std::size_t size_for(std::size_t bytes) const noexcept { return room_for(bytes, granule_); }
  // Whether the host alone uses the memory, so that it may be poisoned and zeroed at any time.
  bool on_host() const noexcept { return on_host_; }
  TypedPool<HeapRecord>& records() noexcept { return records_; }

  bool is_valid() const noexcept;

 private:
  Region* add_region(std::size_t bytes_min) noexcept;
  void drop_last_region() noexcept;
  Region* region_of(const std::byte* begin, std::size_t bytes) const noexcept;
  std::byte* find_in(const HeapRecord& hole, std::size_t size, std::size_t align) const noexcept;
  HeapRecord* take_across(std::size_t size, std::size_t align, std::uint32_t lane) noexcept;
  HeapRecord* take_trimmed(std::size_t size, std::size_t align, std::uint32_t lane) noexcept;
  bool may_have(const HeapRecord& hole, std::uint32_t lane) const noexcept;
  bool is_idle(const HeapRecord& hole) const noexcept;
  bool has_pages(const Region& region, const HeapRecord& record) const noexcept;
  std::byte* end_for(Region& region, std::uint32_t lane) const noexcept;
  HeapRecord* carve(HeapRecord& hole, std::byte* begin, std::size_t size) noexcept;
  bool extend(Region& region, std::byte* used_from, std::byte* to, std::uint32_t lane) noexcept;
  bool touch(Region& region, std::byte* begin, std::byte* end) noexcept;
  std::size_t decommit(Region& region, std::size_t first, std::size_t last) noexcept;
  std::size_t lower_frontier(Region& region) noexcept;
  void set_committed(Region& region, std::byte* committed) noexcept;
  bool is_valid(const Region& region, std::size_t& holes) const noexcept;

  static void link_before(HeapRecord& at, HeapRecord& record) noexcept;
  void drop(HeapRecord& record) noexcept;

  Source& source_;
  MetaChunks& meta_;
  Budget& budget_;
  HeapCounters& counters_;
  const std::size_t reservation_;
  const std::size_t page_;
  const std::size_t granule_;
  DeviceContext* const order_;
  const bool on_host_;
  bool has_busy_pages_ = false;
  std::size_t trimmed_pages_ = 0;  // over all regions; zero in steady state
  Region* regions_ = nullptr;      // the oldest first
  TypedPool<HeapRecord> records_;
  HoleIndex index_;
};

}  // namespace ebb::inline v0::detail
