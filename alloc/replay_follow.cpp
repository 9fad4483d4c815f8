// SPDX-License-Identifier: Apache-2.0
// Which entry of its plan an allocation is, and where its block goes. [alloc.replay]
#include "replay_impl.h"

#include <algorithm>

namespace ebb::inline v0 {

using detail::HeapRecord;
using detail::IterationPlan;
using detail::PlannedSlot;

namespace {

// How far ahead an allocation is looked for when the one that is expected does not come.
constexpr std::size_t window = 32;
// Running allocations that fit nothing, after which the plan is left.
constexpr std::uint32_t misses_most = 32;

// How far back, and in all how often, the table is asked what keeps a blocked slot from its place,
// before it is left: the answer may lie as many slots back as there are, again and again.
constexpr std::size_t depth_most = 64;
constexpr std::size_t looks_per_slot = 32;

}  // namespace

HeapRecord* Replay::Impl::follow(const Request& request) noexcept {
  if (mode_ == Mode::unplanned) {
    return take_anywhere(request);
  }
  if (!deviated_) {
    strict_ = next_;
  }
  const std::optional<std::uint32_t> slot = match(request);
  if (slot && plan_->slots()[*slot].offset == PlannedSlot::nowhere) {
    return take_anywhere(request);
  }
  HeapRecord* const record = slot && mode_ != Mode::unplanned ? place(*slot, request) : nullptr;
  return record != nullptr ? record : displace(slot, request);
}

std::optional<std::uint32_t> Replay::Impl::match(const Request& request) noexcept {
  if ((next_ < plan_->size() && plan_->fits(next_, request.entry)) ||
      (!deviated_ && take_over(request))) {
    misses_ = 0;
    return static_cast<std::uint32_t>(next_++);
  }
  deviate();
  std::optional<std::uint32_t> slot = match_passed(request);
  if (!slot) {
    slot = match_ahead(request);
  }
  if (!slot) {
    slot = match_resized(request);
  }
  misses_ = slot ? 0 : misses_ + 1;
  if (misses_ == misses_most) {
    if (mode_ == Mode::solid) {
      loosen();
    }
    mode_ = Mode::unplanned;
  }
  return slot;
}

std::optional<std::uint32_t> Replay::Impl::match_passed(const Request& request) noexcept {
  const auto found = std::find_if(passed_.begin(), passed_.end(), [&](std::uint32_t slot) {
    return plan_->fits(slot, request.entry);
  });
  if (found == passed_.end()) {
    return std::nullopt;
  }
  const std::uint32_t slot = *found;
  passed_.erase(found);
  return slot;
}

std::optional<std::uint32_t> Replay::Impl::match_ahead(const Request& request) noexcept {
  const std::size_t end = std::min(plan_->size(), next_ + window);
  for (std::size_t i = next_; i < end; ++i) {
    if (plan_->fits(i, request.entry)) {
      while (next_ < i) {
        pass_over(static_cast<std::uint32_t>(next_++));
      }
      return static_cast<std::uint32_t>(next_++);
    }
  }
  return std::nullopt;
}

// The same place asks for another size. Where that is much less, something small was put in
// between, as far as can be told, and what is expected still comes.
std::optional<std::uint32_t> Replay::Impl::match_resized(const Request& request) noexcept {
  if (next_ >= plan_->size() || !plan_->sequence()[next_].place.is_same_as(request.entry.place) ||
      request.is_range()) {
    return std::nullopt;
  }
  const auto slot = static_cast<std::uint32_t>(next_++);
  const PlannedSlot& planned = plan_->slots()[slot];
  const std::uint64_t room = planned.offset == PlannedSlot::nowhere ? 0 : planned.size;
  if (request.size <= room && request.size >= room / 2) {
    return slot;
  }
  pass_over(slot);
  return std::nullopt;
}

// Another plan that has begun alike, and expects what comes. The blocks that live have the same
// addresses in both, or the range comes loose.
bool Replay::Impl::take_over(const Request& request) noexcept {
  const IterationPlan* other = nullptr;
  bool fits_range = false;
  for (const auto& plan : plans_->list) {
    if (plan.get() != plan_ && next_ < plan->size() && plan->begins_as(*plan_, next_) &&
        plan->fits(next_, request.entry)) {
      fits_range = table_.count == 0 || has_offsets_of(*plan);
      other = plan.get();
      if (fits_range) {
        break;
      }
    }
  }
  if (other == nullptr) {
    return false;
  }
  if (mode_ == Mode::solid && !fits_range) {
    come_loose();
  } else if (mode_ == Mode::solid) {
    unblock_all();
  }
  plan_ = other;
  if (mode_ == Mode::solid && table_.count != 0) {
    block_the_dead();
  }
  return true;
}

// Nobody has looked whether what is dead might have had its place in the plan that is followed from
// now on. In order, so that each is told by those right before it.
void Replay::Impl::block_the_dead() noexcept {
  std::replace(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(next_),
               static_cast<HeapRecord*>(nullptr), blocked());
  has_blocked_ = true;
  looks_ = 0;
  for (std::size_t slot = 0; slot < next_; ++slot) {
    is_gone(static_cast<std::uint32_t>(slot), 0);
  }
}

bool Replay::Impl::has_offsets_of(const IterationPlan& other) const noexcept {
  for (std::size_t i = 0; i < next_; ++i) {
    if (slots_[i] != nullptr && plan_->slots()[i].offset != other.slots()[i].offset) {
      return false;
    }
  }
  return true;
}

bool Replay::Impl::is_gone(std::uint32_t slot, std::size_t depth) noexcept {
  ++looks_;
  if (slots_[slot] == blocked()) {
    if (depth == depth_most || looks_ > looks_per_slot * plan_->size()) {
      is_tangled_ = true;
    } else if (is_clear(slot, depth + 1)) {
      slots_[slot] = nullptr;
      settle(slot);
    }
  }
  return slots_[slot] == nullptr;
}

bool Replay::Impl::is_clear(std::uint32_t number, std::size_t depth) noexcept {
  const PlannedSlot& slot = plan_->slots()[number];
  const auto gone = [this, depth](std::uint32_t before) { return is_gone(before, depth); };
  const auto more = plan_->more_predecessors(slot);
  return std::all_of(slot.predecessors.begin(), slot.predecessors.end(), gone) &&
         std::all_of(more.begin(), more.end(), gone);
}

void Replay::Impl::pass_over(std::uint32_t slot) noexcept {
  if (passed_.size() == passed_most) {
    passed_.erase(passed_.begin());
  }
  passed_.push_back(slot);
  block(slot);
}

void Replay::Impl::block(std::uint32_t slot) noexcept {
  if (mode_ != Mode::solid || plan_->slots()[slot].offset == PlannedSlot::nowhere ||
      slots_[slot] != nullptr) {
    return;
  }
  if (is_clear(slot)) {
    return settle(slot);
  }
  slots_[slot] = blocked();
  has_blocked_ = true;
}

// The planned address, if nobody lives there.
HeapRecord* Replay::Impl::place(std::uint32_t slot, const Request& request) noexcept {
  const std::uint64_t offset = plan_->slots()[slot].offset;
  if (request.align.value() > set_->granule() || offset == PlannedSlot::nowhere) {
    return nullptr;
  }
  if (mode_ == Mode::loose) {
    if (heap_->has_foreign_blocks()) {
      heap_->drain();
    }
    return request.is_range() ? heap_->take_plan_range_at(base_ + offset, request.size, lane())
                              : heap_->take_at(base_ + offset, request.entry.bytes, request.stream);
  }
  const bool in_order = slot + std::size_t{1} >= settled_end_;
  if (in_order && !is_clear(slot) && heap_->has_foreign_blocks()) {
    heap_->drain();
  }
  if (in_order && heap_->awaiting != nullptr && !is_clear(slot)) {
    heap_->join_planned();
  }
  if (!in_order || !is_clear(slot) || !heap_->space.records().ensure(2)) {
    block(slot);
    return nullptr;
  }
  slots_[slot] = nullptr;  // may have been blocked
  settle(slot);
  std::byte* const begin = base_ + offset;
  return request.is_range()
             ? heap_->fill_slot(table_, slot, begin, request.size)
             : put(slot, begin, request.size, request.entry.bytes, request.align, request.stream);
}

// Somewhere else: in a hole, be it the plan's own, before the heap grows. Where the table takes too
// long to tell what is free, the heap is asked from now on.
HeapRecord* Replay::Impl::displace(std::optional<std::uint32_t> slot,
                                   const Request& request) noexcept {
  ++displaced_;
  deviate();
  HeapRecord* record = is_tangled_ ? nullptr : take_hole(request);
  if (record == nullptr && mode_ == Mode::solid) {
    come_loose();
    record = slot ? place(*slot, request) : nullptr;
    record = record != nullptr ? record : take_hole(request);
  }
  return record != nullptr ? record : take_anywhere(request);
}

// A range does not look for one: take_anywhere does, before it grows the heap.
HeapRecord* Replay::Impl::take_hole(const Request& request) noexcept {
  return request.is_range()
             ? nullptr
             : heap_->take_in_holes(request.entry.bytes, request.align, request.stream);
}

HeapRecord* Replay::Impl::take_anywhere(const Request& request) noexcept {
  if (request.is_range()) {
    return heap_->take_plan_range(request.size, request.align.value(), lane());
  }
  return static_cast<HeapRecord*>(
      heap_->heap.take_block(request.entry.bytes, request.align, request.stream));
}

void Replay::Impl::deviate() noexcept {
  record_so_far();
  deviated_ = true;
}

void Replay::Impl::come_loose() noexcept {
  catch_up();
  record_so_far();
  loosen();
}

bool Replay::Impl::give_way() noexcept {
  if (mode_ != Mode::solid) {
    return false;
  }
  come_loose();
  return true;
}

// What came before anything unexpected did is what the plan says, but for deaths that are yet to
// come.
void Replay::Impl::record_so_far() noexcept {
  if (deviated_ || recording_.is_on()) {
    return;
  }
  recording_.begin();
  for (std::size_t i = 0; i < strict_; ++i) {
    SequenceEntry entry = plan_->sequence()[i];
    HeapRecord* const record = slots_[i] == blocked() ? nullptr : slots_[i];
    if (entry.kind != AllocationKind::outliving) {
      entry.dies = std::min(entry.dies, static_cast<std::uint32_t>(strict_));
    }
    recording_.add(record, entry);
  }
}

}  // namespace ebb::inline v0
