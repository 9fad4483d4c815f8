// SPDX-License-Identifier: Apache-2.0
#include "iteration_plan.h"

#include "plan_pinned.h"
#include "plan_problem.h"
#include "region.h"

#include <ebb/alloc/plan.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ebb::inline v0::detail {

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// What of a sequence is planned: time goes by allocations, since only they take memory.
std::vector<PlanInterval> intervals_of(const AllocationSequence& sequence, std::size_t granule) {
  std::vector<PlanInterval> intervals;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const SequenceEntry& entry = sequence[i];
    if (IterationPlan::places(entry, granule)) {
      intervals.push_back({.id = i,
                           .lower = i,
                           .upper = entry.dies,
                           .size = Bytes{std::max<std::size_t>(entry.bytes.count(), 1)}});
    }
  }
  return intervals;
}

std::vector<std::uint64_t> offsets_of(const AllocationSequence& sequence,
                                      std::span<const PlanInterval> intervals, const Plan& plan) {
  std::vector<std::uint64_t> offsets(sequence.size(), PlannedSlot::nowhere);
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    offsets[intervals[i].id] = plan.offsets[i].count();
  }
  return offsets;
}

// Where the blocks that the two sequences have in common keep the addresses that relative has.
std::optional<Plan> plan_like(const AllocationSequence& sequence,
                              std::span<const PlanInterval> intervals, std::size_t granule,
                              const IterationPlan& relative) {
  const std::size_t common = count_common(sequence, relative.sequence());
  std::vector<std::optional<Bytes>> pinned(intervals.size());
  for (std::size_t i = 0; i < intervals.size() && intervals[i].id < common; ++i) {
    const std::uint64_t offset = relative.slots()[intervals[i].id].offset;
    if (offset != PlannedSlot::nowhere) {
      pinned[i] = Bytes{offset};
    }
  }
  return common == 0 ? std::nullopt : plan_around(intervals, Align{granule}, pinned);
}

}  // namespace

std::size_t count_common(const AllocationSequence& a, const AllocationSequence& b) noexcept {
  const auto repeats = [](const SequenceEntry& x, const SequenceEntry& y) { return x.repeats(y); };
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end(), repeats).first - a.begin());
}

std::uint64_t hash_entry(std::uint64_t before, const SequenceEntry& entry) noexcept {
  std::uint64_t name = 0;
  for (const char c : std::string_view(entry.place.file)) {
    name = name * 131 + static_cast<unsigned char>(c);
  }
  const bool nested = entry.kind == AllocationKind::iteration;
  return mix(mix(mix(before, entry.bytes.count()), name), std::uint64_t{entry.place.line} << 16 |
                                                              std::uint64_t{entry.align_log2} << 1 |
                                                              std::uint64_t{nested});
}

std::shared_ptr<const IterationPlan> IterationPlan::make(AllocationSequence sequence,
                                                         std::size_t granule,
                                                         const PlanSetOptions& options,
                                                         const IterationPlan* relative,
                                                         const std::function<bool()>& cancel) {
  constexpr double worth = 1.01;  // by how much more height a plan may have to fit the relative's
  const std::vector<PlanInterval> intervals = intervals_of(sequence, granule);
  PlanOptions how;
  how.nodes = options.nodes;
  how.cancel = cancel;
  Plan best = plan(intervals, Align{granule}, how);
  if (relative != nullptr && !(cancel && cancel())) {
    std::optional<Plan> alike = plan_like(sequence, intervals, granule, *relative);
    if (alike && static_cast<double>(alike->height.count()) <=
                     worth * static_cast<double>(best.height.count())) {
      alike->exact = alike->height == best.height && best.exact;
      best = std::move(*alike);
    }
  }
  const PlanInfo info{.buffers = intervals.size(),
                      .outliving = sequence.size() - intervals.size(),
                      .height = best.height,
                      .max_live = best.max_live,
                      .exact = best.exact};
  const std::vector<std::uint64_t> offsets = offsets_of(sequence, intervals, best);
  return std::shared_ptr<const IterationPlan>(
      new IterationPlan(std::move(sequence), granule, offsets, info));
}

std::shared_ptr<const IterationPlan> IterationPlan::with_offsets(
    AllocationSequence sequence, std::size_t granule, std::vector<std::uint64_t> offsets) {
  const std::vector<PlanInterval> intervals = intervals_of(sequence, granule);
  const PlanProblem problem = make_plan_problem(intervals, Align{granule});
  const Bytes max_live{problem.max_live * problem.unit};
  Bytes height;
  for (const PlanInterval& interval : intervals) {
    const Bytes offset{offsets[interval.id]};
    if (offset.count() % granule != 0) {
      throw std::invalid_argument("entry " + std::to_string(interval.id) + " is not aligned");
    }
    height = std::max(height, offset + Bytes{round_up(interval.size.count(), granule)});
  }
  const PlanInfo info{.buffers = intervals.size(),
                      .outliving = sequence.size() - intervals.size(),
                      .height = height,
                      .max_live = max_live,
                      .exact = height == max_live};
  std::shared_ptr<const IterationPlan> made(
      new IterationPlan(std::move(sequence), granule, offsets, info));
  made->check_predecessors();
  return made;
}

IterationPlan::IterationPlan(AllocationSequence sequence, std::size_t granule,
                             std::span<const std::uint64_t> offsets, const PlanInfo& info)
    : sequence_(std::move(sequence)), info_(info) {
  set_slots(offsets, granule);
}

void IterationPlan::set_slots(std::span<const std::uint64_t> offsets, std::size_t granule) {
  slots_ = std::make_unique<PlannedSlot[]>(sequence_.size() + 1);
  prefixes_.push_back(0);
  const auto nobody = static_cast<std::uint32_t>(sequence_.size());
  for (std::size_t i = 0; i < sequence_.size(); ++i) {
    const SequenceEntry& entry = sequence_[i];
    PlannedSlot& slot = slots_[i];
    slot.offset = offsets[i];
    const bool quick = slot.offset != PlannedSlot::nowhere && entry.kind == AllocationKind::block;
    slot.bytes = quick ? entry.bytes.count() : PlannedSlot::nowhere;
    slot.file.store(quick ? entry.place.file : nullptr, std::memory_order_relaxed);
    slot.line = entry.place.line;
    slot.number = static_cast<std::uint32_t>(i);
    slot.size = room_for(entry.bytes.count(), granule);
    slot.predecessors = {nobody, nobody};
    prefixes_.push_back(hash_entry(prefixes_.back(), entry));
    if (slot.offset != PlannedSlot::nowhere) {
      by_offset_.push_back(static_cast<std::uint32_t>(i));
    }
  }
  find_predecessors();
  std::sort(by_offset_.begin(), by_offset_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return slots_[a].offset < slots_[b].offset;
  });
}

// A line of addresses, each stretch with the slot that had it last.
void IterationPlan::find_predecessors() {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint32_t>> last;  // begin -> end, slot
  std::vector<std::uint32_t> found;
  for (const std::uint32_t i : by_offset_) {  // not sorted yet: in order of birth
    const std::uint64_t begin = slots_[i].offset;
    const std::uint64_t end = begin + slots_[i].size;
    found.clear();
    auto at = last.lower_bound(begin);
    if (at != last.begin() && std::prev(at)->second.first > begin) {
      --at;
    }
    while (at != last.end() && at->first < end) {
      const auto [stretch_begin, stretch] = *at;
      found.push_back(stretch.second);
      at = last.erase(at);
      if (stretch_begin < begin) {
        last.emplace(stretch_begin, std::pair(begin, stretch.second));
      }
      if (stretch.first > end) {
        at = last.emplace(end, stretch).first;
      }
    }
    last.emplace(begin, std::pair(end, i));
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    PlannedSlot& slot = slots_[i];
    const std::size_t near = std::min(found.size(), slot.predecessors.size());
    std::copy_n(found.begin(), near, slot.predecessors.begin());
    slot.more_begin = static_cast<std::uint32_t>(more_.size());
    slot.more = static_cast<std::uint32_t>(found.size() - near);
    more_.insert(more_.end(), found.begin() + static_cast<std::ptrdiff_t>(near), found.end());
  }
}

// A block that is in another one's way had some of its addresses last: had a third block had all of
// them in between, the two would be in each other's way. So this finds an overlap if there is one,
// and where many blocks share addresses it is far quicker than validate().
void IterationPlan::check_predecessors() const {
  const auto check = [this](std::uint32_t before, std::uint32_t slot) {
    if (before < size() && sequence_[before].dies > slot) {
      throw std::invalid_argument("entries " + std::to_string(before) + " and " +
                                  std::to_string(slot) + " overlap in time and space");
    }
  };
  for (const std::uint32_t slot : by_offset_) {
    for (const std::uint32_t before : slots_[slot].predecessors) {
      check(before, slot);
    }
    for (const std::uint32_t before : more_predecessors(slots_[slot])) {
      check(before, slot);
    }
  }
}

bool IterationPlan::fits(std::size_t i, const SequenceEntry& entry) const noexcept {
  if (!sequence_[i].repeats(entry)) {
    return false;
  }
  if (slots_[i].bytes != PlannedSlot::nowhere) {
    slots_[i].file.store(entry.place.file, std::memory_order_relaxed);
  }
  return true;
}

bool IterationPlan::repeats(const AllocationSequence& sequence) const noexcept {
  return sequence.size() == size() && count_common(sequence_, sequence) == size();
}

}  // namespace ebb::inline v0::detail
