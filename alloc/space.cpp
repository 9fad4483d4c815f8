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

// How many holes that fit are searched for pages, where some have gone back.
constexpr std::size_t trimmed_tries = 64;

// The lowest place for size bytes in [from, end), or null.
std::byte* place_in(std::byte* from, std::byte* end, std::size_t size, std::size_t align) noexcept {
  std::byte* const begin = align_up(from, align);
  return begin <= end && size <= static_cast<std::size_t>(end - begin) ? begin : nullptr;
}

}  // namespace

HeapRecord* Space::take(std::size_t size, std::size_t align) noexcept {
  HeapRecord* hole = index_.best_fit(size);
  if (hole == nullptr || !records_.ensure(records_per_call)) [[unlikely]] {
    return nullptr;
  }
  // Padding did not fit, or the pages have gone back. Of holes without pages there may be as many
  // as there were blocks: after some take_growing is to have those back.
  const std::size_t tries = trimmed_pages_ != 0 ? trimmed_tries : ~std::size_t{0};
  for (std::size_t tried = 0; hole != nullptr && tried < tries; ++tried) {
    if (std::byte* const begin = find_in(*hole, size, align)) {
      return carve(*hole, begin, size);
    }
    hole = index_.next_fit(*hole);
  }
  return nullptr;
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
HeapRecord* Space::take_trimmed(std::size_t size, std::size_t align) noexcept {
  HeapRecord* hole = trimmed_pages_ != 0 ? index_.best_fit(size) : nullptr;
  for (; hole != nullptr; hole = index_.next_fit(*hole)) {
    std::byte* const begin = place_in(hole->begin(), hole->end(), size, align);
    // The budget may refuse one hole's pages where the next may have them.
    if (begin != nullptr && touch(*region_of(begin, size), begin, begin + size)) {
      return carve(*hole, begin, size);
    }
  }
  return nullptr;
}

HeapRecord* Space::take_at(std::byte* begin, std::size_t size) noexcept {
  Region* region = region_of(begin, size);
  if (region == nullptr || !records_.ensure(records_per_call)) {
    return nullptr;
  }
  std::byte* end = begin + size;
  if (end <= region->frontier) {
    HeapRecord* hole = index_.floor(begin);
    if (hole == nullptr || hole->end() < end || !touch(*region, begin, end)) {
      return nullptr;
    }
    return carve(*hole, begin, size);
  }
  if (begin < region->tail() ||
      (begin < region->frontier && !touch(*region, begin, region->frontier)) ||
      !extend(*region, begin, end)) {
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
        rest->set_kind(RecordKind::hole);
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
      rest->set_kind(RecordKind::hole);
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

void Space::give(HeapRecord& range) noexcept {
  HeapRecord& before = *range.prev;
  HeapRecord& after = *range.next;
  const bool joins_before = before.kind() == RecordKind::hole;
  const bool joins_after = after.kind() == RecordKind::hole;
  if (joins_before) {
    std::size_t size = before.size + range.size;
    if (joins_after) {
      size += after.size;
      index_.erase(after);
      drop(after);
    }
    drop(range);
    index_.resize(before, before.begin(), size);
  } else if (joins_after) {
    index_.resize(after, range.begin(), range.size + after.size);
    drop(range);
  } else {
    range.set_kind(RecordKind::hole);
    index_.insert(range);
  }
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
  bool after_hole = false;
  for (const HeapRecord* record = region.edge.next; record != &region.edge; record = record->next) {
    const bool hole = record->kind() == RecordKind::hole;
    if (record->begin() != at || record->size == 0 || record->size % granule_ != 0 ||
        record->next->prev != record || (hole && after_hole) ||
        (!hole && record->kind() != RecordKind::block && record->kind() != RecordKind::slab &&
         record->kind() != RecordKind::plan)) {
      return false;
    }
    // Only holes may lie on pages that have gone back.
    if (!hole && region.trimmed.count(region.page_down(at), region.page_up(record->end())) != 0) {
      return false;
    }
    holes += hole ? 1 : 0;
    after_hole = hole;
    at = record->end();
  }
  const std::size_t committed_pages = region.page_up(region.committed);
  return at == region.frontier && region.page_up(region.frontier) == committed_pages &&
         region.trimmed.count(committed_pages, region.trimmed.pages()) == 0;
}

}  // namespace ebb::inline v0::detail
