// SPDX-License-Identifier: Apache-2.0
// Best fit over coalesced holes: how ranges are taken, given back and joined. [alloc.heap]
// Used by the heap's owner only.
#include "space.h"

#include <ebb/alloc/check.h>

#include <algorithm>

namespace ebb::inline v0::detail {

namespace {

// The most records that one call takes: a hole at the frontier, a block, the hole after it.
constexpr std::size_t records_per_call = 3;

// How many holes that fit are looked at where not all of them will do: some have no pages, or
// another lane is not done with them.
constexpr std::size_t some_tries = 64;

// The lowest place for size bytes in [from, end), or null.
std::byte* place_in(std::byte* from, std::byte* end, std::size_t size, std::size_t align) noexcept {
  std::byte* const begin = align_up(from, align);
  return begin <= end && size <= static_cast<std::size_t>(end - begin) ? begin : nullptr;
}

}  // namespace

HeapRecord* Space::take(std::size_t size, std::size_t align, std::uint32_t lane) noexcept {
  SizeIndex& own = index_.of(lane);
  HeapRecord* hole = own.best_fit(size);
  if ((hole == nullptr && order_ == nullptr) || !records_.ensure(records_per_call)) [[unlikely]] {
    return nullptr;
  }
  // Padding did not fit, or the pages have gone back. Of holes without pages there may be as many
  // as there were blocks: after some take_growing is to have those back.
  const std::size_t tries = trimmed_pages_ != 0 ? some_tries : ~std::size_t{0};
  for (std::size_t tried = 0; hole != nullptr && tried < tries; ++tried) {
    if (std::byte* const begin = find_in(*hole, size, align)) {
      return carve(*hole, begin, size);
    }
    hole = own.next_fit(*hole);
  }
  return order_ == nullptr ? nullptr : take_across(size, align, lane);
}

// From the smallest hole of another lane that this one may have by now.
HeapRecord* Space::take_across(std::size_t size, std::size_t align, std::uint32_t lane) noexcept {
  HeapRecord* best = nullptr;
  std::byte* begin = nullptr;
  index_.for_each_lane([&](std::uint32_t other, const SizeIndex& holes) {
    HeapRecord* hole = other == lane ? nullptr : holes.best_fit(size);
    for (std::size_t tried = 0; hole != nullptr && tried < some_tries; ++tried) {
      if (best != nullptr && hole->size >= best->size) {
        break;
      }
      std::byte* const at = may_have(*hole, lane) ? find_in(*hole, size, align) : nullptr;
      if (at != nullptr) {
        best = hole;
        begin = at;
      }
      hole = holes.next_fit(*hole);
    }
    return true;
  });
  return best == nullptr ? nullptr : carve(*best, begin, size);
}

bool Space::may_have(const HeapRecord& hole, std::uint32_t lane) const noexcept {
  return hole.lane() == lane || order_->is_after(lane, hole.lane(), hole.point());
}

// Whether the device has nothing to do with a hole's pages any more.
bool Space::is_idle(const HeapRecord& hole) const noexcept {
  return order_ == nullptr || order_->is_over(hole.lane(), hole.point());
}

// The lowest place for size bytes on committed pages of a hole, or null.
std::byte* Space::find_in(const HeapRecord& hole, std::size_t size,
                          std::size_t align) const noexcept {
  if (trimmed_pages_ == 0) {
    return place_in(hole.begin(), hole.end(), size, align);
  }
  const Region& region = *region_of(hole.begin(), hole.size);
  std::byte* found = nullptr;
  region.trimmed.for_each_run(region.page_down(hole.begin()), region.page_up(hole.end()), false,
                              [&](std::size_t from, std::size_t to) {
                                found =
                                    place_in(std::max(region.page_at(from), hole.begin()),
                                             std::min(region.page_at(to), hole.end()), size, align);
                                return found == nullptr;
                              });
  return found;
}

// From a hole whose pages have gone back.
HeapRecord* Space::take_trimmed(std::size_t size, std::size_t align, std::uint32_t lane) noexcept {
  HeapRecord* found = nullptr;
  const auto search = [&](std::uint32_t, const SizeIndex& holes) {
    HeapRecord* hole = holes.best_fit(size);
    for (; hole != nullptr && found == nullptr; hole = holes.next_fit(*hole)) {
      std::byte* const begin =
          may_have(*hole, lane) ? place_in(hole->begin(), hole->end(), size, align) : nullptr;
      // The budget may refuse one hole's pages where the next may have them.
      if (begin != nullptr && touch(*region_of(begin, size), begin, begin + size)) {
        found = carve(*hole, begin, size);
        break;
      }
    }
    return found == nullptr;
  };
  if (trimmed_pages_ != 0 && search(lane, index_.of(lane)) && order_ != nullptr) {
    index_.for_each_lane(search);
  }
  return found;
}

HeapRecord* Space::take_at(std::byte* begin, std::size_t size, std::uint32_t lane) noexcept {
  Region* region = region_of(begin, size);
  if (region == nullptr || !records_.ensure(records_per_call)) {
    return nullptr;
  }
  std::byte* end = begin + size;
  if (end <= region->frontier) {
    HeapRecord* hole = index_.floor(begin);
    if (hole == nullptr || hole->end() < end || !may_have(*hole, lane) ||
        !touch(*region, begin, end)) {
      return nullptr;
    }
    return carve(*hole, begin, size);
  }
  if (begin < end_for(*region, lane) ||
      (begin < region->frontier && !touch(*region, begin, region->frontier)) ||
      !extend(*region, begin, end, lane)) {
    return nullptr;
  }
  return carve(*region->edge.prev, begin, size);
}

HeapRecord* Space::carve(HeapRecord& hole, std::byte* begin, std::size_t size) noexcept {
  const auto before = static_cast<std::size_t>(begin - hole.begin());
  const auto after = static_cast<std::size_t>(hole.end() - begin) - size;
  HeapRecord* block = &hole;
  if (before == 0 && after == 0) {
    index_.erase(hole);
  } else {
    block = records_.take();
    block->data = begin;
    block->size = size;
    if (before == 0) {
      index_.resize(hole, begin + size, after);
      link_before(hole, *block);
    } else {
      index_.resize(hole, hole.begin(), before);
      link_before(*hole.next, *block);
      if (after != 0) {
        HeapRecord* rest = records_.take();
        rest->data = begin + size;
        rest->size = after;
        rest->make_hole(hole.lane(), hole.point());
        link_before(*block->next, *rest);
        index_.insert(*rest);
      }
    }
  }
  block->set_kind(RecordKind::block);
  return block;
}

void Space::put_back(HeapRecord& record) noexcept {
  HeapRecord& hole = *index_.floor(record.begin());
  const auto before = static_cast<std::size_t>(record.begin() - hole.begin());
  const auto after = static_cast<std::size_t>(hole.end() - record.end());
  if (before != 0) {
    link_before(*hole.next, record);
    index_.resize(hole, hole.begin(), before);
    if (after != 0) {
      HeapRecord* rest = records_.take();
      rest->data = record.end();
      rest->size = after;
      rest->make_hole(hole.lane(), hole.point());
      link_before(*record.next, *rest);
      index_.insert(*rest);
    }
  } else {
    link_before(hole, record);
    if (after != 0) {
      index_.resize(hole, record.end(), after);
    } else {
      index_.erase(hole);
      drop(hole);
    }
  }
}

void Space::give(HeapRecord& range, std::uint32_t lane, std::uint64_t point) noexcept {
  HeapRecord& before = *range.prev;
  HeapRecord& after = *range.next;
  const bool joins_before = before.is_hole_of(lane);
  const bool joins_after = after.is_hole_of(lane);
  if (joins_before) {
    std::size_t size = before.size + range.size;
    if (joins_after) {
      size += after.size;
      index_.erase(after);
      drop(after);
    }
    drop(range);
    before.raise_point(point);
    index_.resize(before, before.begin(), size);
  } else if (joins_after) {
    after.raise_point(point);
    index_.resize(after, range.begin(), range.size + after.size);
    drop(range);
  } else {
    range.make_hole(lane, point);
    index_.insert(range);
  }
}

// What the lane does later comes after what all others have done there, so its own next point
// covers that. Nothing to do where one stream has it all, as most heaps have: each growth asks.
bool Space::unite(std::uint32_t lane) noexcept {
  if (!index_.has_others(lane)) {
    return false;
  }
  bool any = false;
  for (Region* region = regions_; region != nullptr; region = region->next) {
    HeapRecord* before = &region->edge;
    while (before->next != &region->edge) {
      HeapRecord& record = *before->next;
      if (record.kind() != RecordKind::hole || record.lane() == lane || !may_have(record, lane)) {
        before = &record;
        continue;
      }
      index_.erase(record);
      give_now(record, lane);  // the next one to look at is still behind the one before
      any = true;
      before = before->next == &region->edge || before->is_hole_of(lane) ? before : before->next;
    }
  }
  EBB_ASSERT_VALID(*this);
  return any;
}

bool Space::is_free(const std::byte* begin, std::size_t bytes) const noexcept {
  const Region* region = region_of(begin, bytes);
  if (region == nullptr) {
    return false;
  }
  if (begin >= region->frontier) {
    return true;
  }
  const HeapRecord* hole = index_.floor(begin);
  return hole != nullptr && begin < hole->end() &&
         hole->end() >= std::min<const std::byte*>(begin + bytes, region->frontier);
}

Region* Space::region_of(const std::byte* begin, std::size_t bytes) const noexcept {
  Region* region = regions_;
  while (region != nullptr && !region->contains(begin, bytes)) {
    region = region->next;
  }
  return region;
}

void Space::link_before(HeapRecord& at, HeapRecord& record) noexcept {
  record.prev = at.prev;
  record.next = &at;
  at.prev->next = &record;
  at.prev = &record;
}

void Space::drop(HeapRecord& record) noexcept {
  record.prev->next = record.next;
  record.next->prev = record.prev;
  record.set_kind(RecordKind::spare);
  records_.give(&record);
}

bool Space::is_valid() const noexcept {
  std::size_t holes = 0;
  std::size_t trimmed = 0;
  for (const Region* region = regions_; region != nullptr; region = region->next) {
    if (!is_valid(*region, holes)) {
      return false;
    }
    trimmed += region->trimmed.count(0, region->trimmed.pages());
  }
  return index_.is_valid() && index_.count() == holes && trimmed == trimmed_pages_;
}

bool Space::is_valid(const Region& region, std::size_t& holes) const noexcept {
  const std::byte* at = region.range.begin;
  const HeapRecord* hole_before = nullptr;
  for (const HeapRecord* record = region.edge.next; record != &region.edge; record = record->next) {
    const bool hole = record->kind() == RecordKind::hole;
    if (record->begin() != at || record->size == 0 || record->size % granule_ != 0 ||
        record->next->prev != record ||
        (hole && hole_before != nullptr && hole_before->lane() == record->lane()) ||
        (!hole && record->kind() != RecordKind::block && record->kind() != RecordKind::slab &&
         record->kind() != RecordKind::plan)) {
      return false;
    }
    // Only holes may lie on pages that have gone back.
    if (!hole && region.trimmed.count(region.page_down(at), region.page_up(record->end())) != 0) {
      return false;
    }
    holes += hole ? 1 : 0;
    hole_before = hole ? record : nullptr;
    at = record->end();
  }
  const std::size_t committed_pages = region.page_up(region.committed);
  return at == region.frontier && region.page_up(region.frontier) == committed_pages &&
         region.trimmed.count(committed_pages, region.trimmed.pages()) == 0;
}

}  // namespace ebb::inline v0::detail
