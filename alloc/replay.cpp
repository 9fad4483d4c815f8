// SPDX-License-Identifier: Apache-2.0
// How a replay begins, finds its plan and its range, and ends. [alloc.replay]
#include "pool_core.h"
#include "replay_impl.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace ebb::inline v0 {

using detail::HeapRecord;
using detail::IterationPlan;
using detail::PlannedSlot;
using detail::RecordKind;

namespace {

const PlannedSlot no_slot;  // fits nothing

// A range that something foreign lives in moves, but what comes and goes there would have each
// iteration touch new pages: so each move waits for twice as many iterations, at most so many,
// until a range was good for as many again.
constexpr std::uint32_t wait_most = 64;
constexpr std::uint32_t good_after = 16;

// An iteration is unlike its plan when more than this part of its blocks was displaced.
constexpr std::uint64_t unlike_share = 4;

}  // namespace

Replay::Impl::Impl() noexcept : at_(&no_slot) {}

void Replay::Impl::begin(PlanSet::Impl& its_set, const Place& its_place) noexcept {
  end();
  place_ = its_place;
  if (set_.get() != &its_set) {
    set_ = its_set.shared_from_this();
    plans_.reset();
    last_ = nullptr;
  }
  mode_ = Mode::waiting;
}

bool Replay::Impl::is_recursive() const noexcept {
  for (const Impl* it = outer_; it != nullptr; it = it->outer_) {
    if (it->set_ == set_) {
      return true;
    }
  }
  return false;
}

void Replay::Impl::attach(Heap& asked, Stream stream) noexcept {
  Heap::Impl& heap = *asked.impl_;
  mode_ = Mode::apart;
  outer_ = heap.replay;
  stream_ = stream;
  const bool is_apart = outer_ != nullptr && outer_->is_foreign(asked, stream);
  if (heap.bypass || heap.space.granule() != set_->granule() || is_apart || is_recursive() ||
      (heap.space.order() != nullptr && heap.open_lane(stream.lane()) == nullptr)) {
    return;
  }
  set_->iterations.fetch_add(1, std::memory_order_relaxed);
  if (set_->rests()) {
    return;
  }
  heap_ = &heap;
  deviated_ = false;
  next_ = 0;
  strict_ = 0;
  settled_end_ = 0;
  misses_ = 0;
  looks_ = 0;
  is_tangled_ = false;
  displaced_ = 0;
  passed_.clear();
  choose_plan();
  mode_ = plan_ != nullptr && make_table() ? Mode::loose : Mode::unplanned;
  if (mode_ == Mode::loose) {
    if (open_range()) {
      mode_ = Mode::solid;
      own_heap_ = heap.space.order() == nullptr ? &asked : nullptr;
    } else if (base_ == nullptr) {
      mode_ = Mode::unplanned;
    }
  }
  heap.replay = this;
  if (mode_ != Mode::solid) {
    recording_.begin();
  }
}

void Replay::Impl::choose_plan() noexcept {
  set_->refresh(plans_);
  const auto& list = plans_->list;
  const auto is_last = [this](const auto& plan) { return plan.get() == last_; };
  if (std::none_of(list.begin(), list.end(), is_last)) {
    last_ = list.empty() ? nullptr : list.front().get();
    move_wait_ = 0;  // it may know of what was in the way
  }
  plan_ = last_;
}

bool Replay::Impl::make_table() noexcept {
  std::size_t most = 0;
  for (const auto& plan : plans_->list) {
    most = std::max(most, plan->size());
  }
  try {
    if (slots_.size() <= most) {
      living_.reserve(most);
      passed_.reserve(passed_most);
      slots_.resize(most + 1);  // last: its size tells that the others have their room
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  table_.live = slots_.data();
  return true;
}

bool Replay::Impl::open_range() noexcept {
  if (outer_ != nullptr) {
    const std::size_t size = std::max(plans_->height, set_->granule());
    range_ = outer_->open_inner(place_, size);
    base_ = range_ == nullptr ? nullptr : range_->begin();
    return range_ != nullptr;
  }
  const std::size_t unit = heap_->plan_unit();
  const std::size_t size = detail::round_up(std::max(plans_->height, unit), unit);
  ++since_move_;
  const std::byte* const before = heap_->plan_range.begin;
  const bool opened =
      heap_->open_plan_range(size, stream_, before == nullptr || since_move_ > move_wait_);
  range_ = heap_->plan_range.record;
  base_ = heap_->plan_range.begin;
  if (before != nullptr && base_ != before) {
    move_wait_ =
        since_move_ > good_after + move_wait_ ? 1 : std::min(2 * move_wait_ + 1, wait_most);
    since_move_ = 0;
  }
  return opened;
}

// Of a solid range that nobody lives in.
void Replay::Impl::close_range() noexcept {
  HeapRecord& range = *std::exchange(range_, nullptr);
  if (&range == heap_->plan_range.record) {
    return heap_->leave_plan_range();
  }
  if (range.is_marked()) {
    heap_->note_death(range);
  }
  if (range.kind() == RecordKind::plan) {
    return heap_->space.give_now(range, lane());
  }
  heap_->empty_slot(range);
}

bool Replay::Impl::end() noexcept {
  bool work = false;
  if (heap_ != nullptr) {
    catch_up();
    heap_->drain();
    if (heap_->awaiting != nullptr) {
      heap_->join_planned();  // what only other streams still use does not outlive the iteration
    }
    std::vector<std::uint32_t> outliving;
    if (mode_ == Mode::solid && table_.count != 0 && !deviated_ && next_ == plan_->size()) {
      outliving = find_outliving();
    }
    const bool unlike = note_outcome();
    const IterationPlan* followed = mode_ == Mode::unplanned ? nullptr : plan_;
    if (!outliving.empty() && is_to_be_learned(outliving)) {
      work = set_->learn_outliving(*plan_, outlived_before_);
    }
    AllocationSequence recorded = recording_.is_on() ? recording_.end() : AllocationSequence{};
    leave();
    if (!recorded.empty()) {
      followed = find_plan_of(recorded, followed);
      work = set_->take(std::move(recorded), unlike) || work;
    } else if (unlike) {
      set_->note_unlike();
    }
    last_ = followed != nullptr ? followed : last_;
  }
  const bool was_open = std::exchange(mode_, Mode::closed) != Mode::closed;
  return work || (was_open && set_->is_unclaimed());
}

// An iteration that left its plan may have one of its own, which begins alike: the next one begins
// on that.
const IterationPlan* Replay::Impl::find_plan_of(const AllocationSequence& recorded,
                                                const IterationPlan* otherwise) const noexcept {
  const auto& list = plans_->list;
  const auto own = std::find_if(list.begin(), list.end(),
                                [&](const auto& plan) { return plan->repeats(recorded); });
  return own == list.end() ? otherwise : own->get();
}

// Tells the set's figures. Returns whether the iteration was not at all as planned.
bool Replay::Impl::note_outcome() noexcept {
  set_->displaced.fetch_add(displaced_, std::memory_order_relaxed);
  if (deviated_) {
    set_->deviated.fetch_add(1, std::memory_order_relaxed);
  }
  if (mode_ == Mode::unplanned || displaced_ * unlike_share > next_) {
    return true;
  }
  if (!deviated_ && displaced_ == 0) {
    set_->note_followed();
  }
  return false;
}

// An iteration of which much lives on, like one that ended early, ended by an accident; nothing is
// learned from that.
std::vector<std::uint32_t> Replay::Impl::find_outliving() const noexcept {
  std::vector<std::uint32_t> found;
  if (table_.count > 1 + plan_->size() / 8) {
    return found;
  }
  try {
    for (std::uint32_t slot = 0; slot < next_; ++slot) {
      if (slots_[slot] != nullptr && slots_[slot] != blocked() &&
          plan_->sequence()[slot].kind == AllocationKind::block) {
        found.push_back(slot);
      }
    }
  } catch (const std::bad_alloc&) {
    found.clear();
  }
  return found;
}

// Something small at once: it is kept now and then. What is large would cost much outside the plan,
// so once may have been an accident.
bool Replay::Impl::is_to_be_learned(std::vector<std::uint32_t>& outliving) noexcept {
  std::size_t bytes = 0;
  for (const std::uint32_t slot : outliving) {
    bytes += plan_->slots()[slot].size;
  }
  const bool again = outliving == outlived_before_;
  outlived_before_ = std::move(outliving);
  return again || bytes <= plan_->height() / 8;
}

void Replay::Impl::leave() noexcept {
  if (heap_ == nullptr) {
    return;
  }
  catch_up();
  recording_.give_up();
  if (mode_ == Mode::solid) {
    if (table_.count == 0) {
      unblock_all();
      close_range();
    } else {
      loosen();
    }
  }
  // This is the innermost one, unless iterations were closed out of order.
  Impl** link = &heap_->replay;
  while (*link != this) {
    link = &(*link)->outer_;
  }
  *link = outer_;
  mode_ = Mode::apart;
  heap_ = nullptr;
  own_heap_ = nullptr;
  outer_ = nullptr;
  plan_ = nullptr;
  at_ = &no_slot;
}

// What lives in the range stays where it is, as the heap's own.
void Replay::Impl::loosen() noexcept {
  if (outer_ != nullptr && range_->kind() == RecordKind::planned) {
    outer_->come_loose();
  }
  unblock_all();
  living_.clear();
  for (const std::uint32_t slot : plan_->by_offset()) {
    HeapRecord* const record = std::exchange(slots_[slot], nullptr);
    if (record != nullptr) {
      const bool is_range = plan_->sequence()[slot].kind == AllocationKind::iteration;
      record->turn_into(is_range ? RecordKind::plan : RecordKind::block);
      living_.push_back(record);
    }
  }
  table_.count = 0;
  if (range_ == heap_->plan_range.record) {  // and not what one around this, gone by now, gave
    heap_->plan_range.record = nullptr;
    heap_->plan_range.in_use = false;
    heap_->plan_range.is_wanted = false;
  } else if (range_->is_marked()) {
    heap_->note_death(*range_);
  }
  heap_->dissolve(*std::exchange(range_, nullptr), lane(), living_);
  mode_ = Mode::loose;
  own_heap_ = nullptr;
  at_ = &no_slot;
}

void Replay::Impl::unblock_all() noexcept {
  if (has_blocked_) {
    std::replace(slots_.begin(), slots_.end(), blocked(), static_cast<HeapRecord*>(nullptr));
    has_blocked_ = false;
  }
}

void Replay::Impl::catch_up() noexcept {
  if (at_ != &no_slot) {
    next_ = static_cast<std::size_t>(at_ - plan_->slots());
    settled_end_ = std::max(settled_end_, next_);
    if (!deviated_) {
      strict_ = next_;
    }
    at_ = &no_slot;
  }
}

void Replay::Impl::go_on_quickly() noexcept {
  if (own_heap_ != nullptr && !recording_.is_on()) {
    at_ = plan_->slots() + next_;
  }
}

void Replay::Impl::join() noexcept {
  if (heap_ != nullptr) {
    heap_->drain();
    recording_.join();
  }
}

bool Replay::Impl::attach_early(Heap& asked, Stream stream) noexcept {
  if (mode_ == Mode::waiting) {
    attach(asked, stream);
  }
  return is_as_planned();
}

BlockRecord* Replay::Impl::take_slowly(Heap& asked, Bytes bytes, Align align, Stream stream,
                                       const Place& where) noexcept {
  EBB_ASSERT(asked.is_mine());
  if (mode_ == Mode::waiting) {
    attach(asked, stream);
  }
  if (is_foreign(asked, stream)) {
    return asked.take_block(bytes, align, stream);
  }
  if (bytes.count() > HeapRecord::bytes_max) {
    return nullptr;
  }
  catch_up();
  const Request request{
      .entry = {.bytes = bytes,
                .place = where,
                .align_log2 = static_cast<std::uint8_t>(std::countr_zero(align.value()))},
      .align = align,
      .stream = stream,
      .size = heap_->space.size_for(bytes.count())};
  HeapRecord* const record = follow(request);
  if (record != nullptr) {
    recording_.add(record, request.entry);
  }
  if (mode_ == Mode::unplanned && !recording_.is_on()) {
    leave();  // too long, or no memory to record it
  }
  go_on_quickly();
  return record;
}

Cell* Replay::Impl::take_cell_slowly(Heap& asked, Bytes bytes, Align align, const Stream& stream,
                                     const Place& where) noexcept {
  Cell* const cell = asked.take_cell();
  if (cell == nullptr) {
    return nullptr;
  }
  cell->block = take_slowly(asked, bytes, align, stream, where);
  if (cell->block == nullptr) {
    asked.give_cell(cell);
    return nullptr;
  }
  return cell;
}

HeapRecord* Replay::Impl::open_inner(const Place& where, std::size_t bytes) noexcept {
  catch_up();
  const Request request{
      .entry = {.bytes = Bytes{bytes}, .place = where, .kind = AllocationKind::iteration},
      .align = set_->options.granule,
      .stream = stream_,
      .size = bytes};
  HeapRecord* const range = follow(request);
  if (range != nullptr) {
    range->bytes = Bytes{bytes};
    range->top = nullptr;
    recording_.add(range, request.entry);
  }
  go_on_quickly();
  return range;
}

Replay::Replay() : impl_(std::make_unique<Impl>()) {}

Replay::~Replay() {
  end();
}

void Replay::begin(PlanSet& set, const Place& place) noexcept {
  impl_->begin(set.impl(), place);
}

BlockRecord* Replay::take(Heap& heap, Bytes bytes, Align align, Stream stream,
                          const Place& place) noexcept {
  if (impl_->is_expected(heap, bytes, align, place)) [[likely]] {
    return impl_->take_expected(bytes, align, stream);
  }
  return impl_->take_slowly(heap, bytes, align, stream, place);
}

Cell* Replay::take_cell_with_block(Heap& heap, Bytes bytes, Align align, const Stream& stream,
                                   const Place& place) noexcept {
  Impl& it = *impl_;
  if (!it.is_expected(heap, bytes, align, place) || !it.has_cell()) [[unlikely]] {
    return it.take_cell_slowly(heap, bytes, align, stream, place);
  }
  Cell* const cell = it.take_cell();
  cell->block = it.take_expected(bytes, align, stream);
  return cell;
}

bool Replay::attach(Heap& heap, Stream stream) noexcept {
  return impl_->attach_early(heap, stream);
}

bool Replay::is_as_planned() const noexcept {
  return impl_->is_as_planned();
}

void Replay::join() noexcept {
  impl_->join();
}

bool Replay::end() noexcept {
  return impl_->end();
}

}  // namespace ebb::inline v0
