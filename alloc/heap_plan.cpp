// SPDX-License-Identifier: Apache-2.0
// What replay needs of a heap: a range set aside for a plan, and blocks at given places or out of
// what is free. Owner only. [alloc.replay]
#include "heap_impl.h"
#include "pool_core.h"
#include "replay_impl.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace ebb::inline v0 {

using detail::HeapRecord;
using detail::RecordKind;

namespace {

// How many iterations go without a plan, at most, before one tries again to have a range for it.
constexpr std::uint32_t held_off_most = 64;

}  // namespace

HeapRecord* Heap::Impl::take_in_holes(Bytes bytes, Align align, Stream stream) noexcept {
  const std::uint32_t lane = lane_of(stream);
  if (bytes.count() > HeapRecord::bytes_max || align.value() > align_max) {
    return nullptr;
  }
  const std::size_t size = space.size_for(bytes.count());
  const std::size_t aligned = std::max(align.value(), space.granule());
  HeapRecord* record = space.take(size, aligned, lane);
  if (record == nullptr && drain()) {
    record = space.take(size, aligned, lane);
  }
  if (record != nullptr) {
    hand_out(*record, record->begin(), size, bytes, align, stream);
  }
  return record;
}

HeapRecord* Heap::Impl::take_plan_range(std::size_t size, std::size_t align,
                                        std::uint32_t lane) noexcept {
  HeapRecord* range = space.take(size, align, lane);
  if (range == nullptr) {
    range = space.take_growing(size, align, lane);
  }
  if (range != nullptr) {
    range->set_kind(RecordKind::plan);
  }
  return range;
}

HeapRecord* Heap::Impl::take_plan_range_at(std::byte* begin, std::size_t size,
                                           std::uint32_t lane) noexcept {
  HeapRecord* const range = space.take_at(begin, size, lane);
  if (range != nullptr) {
    range->set_kind(RecordKind::plan);
  }
  return range;
}

void Heap::Impl::note_death(HeapRecord& record) noexcept {
  for (Replay::Impl* it = replay; it != nullptr; it = it->outer()) {
    if (it->note_death(record, draining)) {
      return;
    }
  }
  record.clear_mark();  // of a recording that is over
}

HeapRecord* Heap::Impl::take_at(std::byte* begin, Bytes bytes, Stream stream) noexcept {
  const std::size_t size = space.size_for(bytes.count());
  const std::uint32_t lane = lane_of(stream);
  HeapRecord* record = space.take_at(begin, size, lane);
  if (record != nullptr) {
    hand_out(*record, record->begin(), size, bytes, Align{space.granule()}, stream);
  }
  return record;
}

// What lies idle elsewhere was in use before the plan: it goes back once, so that the plan costs no
// second footprint. A device is waited for, since with it the iterations before are still under way
// and nothing would be idle yet.
std::size_t Heap::Impl::give_back_idle() noexcept {
  constexpr std::chrono::seconds patience{4};
  release_empty_slabs();
  const std::size_t bytes = space.trim();
  const bool waits = space.has_busy_pages() && !space.is_capturing();
  return waits && space.wait_until_quiet(patience) ? bytes + space.trim() : bytes;
}

// Where there is room for one footprint only, the range gets it once the rest has gone; and where
// there is not that, it is tried after ever more iterations.
void Heap::Impl::move_plan_range(std::size_t size, std::uint32_t lane) noexcept {
  plan_range.record = take_plan_range(size, plan_unit(), lane);
  const std::size_t idle = give_back_idle();
  if (plan_range.record == nullptr) {
    plan_range.record = idle == 0 ? nullptr : take_plan_range(size, plan_unit(), lane);
  }
  if (plan_range.record == nullptr) {
    plan_range.held_off = plan_range.held_off_next;
    plan_range.held_off_next = std::min(2 * plan_range.held_off_next, held_off_most);
  } else {
    plan_range.begin = plan_range.record->begin();
    plan_range.held_off_next = 1;
  }
}

// What the range has is given back at the end of the iteration at the latest, and, where others
// wait for room under a limit, not taken again at once: they look for it now and then only.
void Heap::Impl::make_room_for_others() noexcept {
  plan_range.is_wanted = plan_range.in_use;
  plan_range.held_off = pool.budget.limit() != 0 ? held_off_most : 0;
  trim();
}

void Heap::Impl::leave_plan_range() noexcept {
  plan_range.in_use = false;
  if (std::exchange(plan_range.is_wanted, false)) {
    trim();
  }
}

// To another stream, which comes after what was done there so far. Returns whether it does.
bool Heap::Impl::hand_over_plan_range(Stream stream) noexcept {
  if (space.order() == nullptr || plan_range.stream == stream) {
    return true;
  }
  try {
    space.order()->wait(stream, plan_range.stream);
  } catch (const std::exception&) {
    return false;
  }
  plan_range.stream = stream;
  return true;
}

bool Heap::Impl::open_plan_range(std::size_t size, Stream stream, bool may_move) noexcept {
  if (plan_range.held_off != 0) {
    --plan_range.held_off;
    return false;
  }
  if (plan_range.record != nullptr &&
      (plan_range.record->size != size || !hand_over_plan_range(stream))) {
    release_plan_range();
  }
  const std::uint32_t lane = lane_of(stream);
  if (plan_range.record == nullptr && plan_range.begin != nullptr) {
    plan_range.record = take_plan_range_at(plan_range.begin, size, lane);
    if (plan_range.record == nullptr && release_empty_slabs()) {
      plan_range.record = take_plan_range_at(plan_range.begin, size, lane);
    }
  }
  if (plan_range.record == nullptr && may_move) {
    move_plan_range(size, lane);
  }
  if (plan_range.record == nullptr) {
    return false;
  }
  plan_range.stream = stream;
  plan_range.in_use = true;
  return true;
}

bool Heap::Impl::release_plan_range() noexcept {
  if (plan_range.record == nullptr || plan_range.in_use) {
    return false;
  }
  space.give_now(*std::exchange(plan_range.record, nullptr), lane_of(plan_range.stream));
  return true;
}

bool Heap::Impl::loosen_plans() noexcept {
  bool any = false;
  for (Replay::Impl* it = replay; it != nullptr; it = it->outer()) {
    any = it->give_way() || any;
  }
  return any;
}

void Heap::Impl::dissolve(HeapRecord& range, std::uint32_t lane,
                          std::span<HeapRecord* const> live) noexcept {
  space.give_now(range, lane);
  for (HeapRecord* const record : live) {
    space.records().unhold();
    space.put_back(*record);
  }
}

}  // namespace ebb::inline v0
