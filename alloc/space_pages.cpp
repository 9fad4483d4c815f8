// SPDX-License-Identifier: Apache-2.0
// The pages under a heap: regions reserved in chunks, frontiers that grow, pages committed against
// the pool's budget and given back when idle. Used by the heap's owner only.
#include "poison.h"
#include "space.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <cstring>

namespace ebb::inline v0::detail {

Space::Space(Source& source, MetaChunks& meta, Budget& budget, HeapCounters& counters,
             std::size_t reservation, DeviceContext* order) noexcept
    : source_(source),
      meta_(meta),
      budget_(budget),
      counters_(counters),
      reservation_(reservation),
      page_(source.page_size().count()),
      granule_((order == nullptr ? default_align_cpu : default_align_cuda).value()),
      order_(order),
      on_host_(order == nullptr),
      records_(meta) {}

Space::~Space() {
  const bool quiet = wait_until_quiet();
  for (Region* region = regions_; region != nullptr; region = region->next) {
    const auto bytes = static_cast<std::size_t>(region->committed - region->range.begin);
    if (on_host_) {
      remove_root(region->range.begin, bytes);
      // The same addresses may come back in a mapping that is not ours.
      unpoison(region->range.begin, bytes);
    }
    if (quiet) {
      source_.release(region->range);
    }
  }
  budget_.give(counters_.still_reserved());
}

// Where it does longer than the end of a heap may take, its pages stay as they are, for good.
bool Space::wait_until_quiet(std::chrono::seconds patience) noexcept {
  if (order_ == nullptr || counters_.reserved.get() == 0) {
    return true;
  }
  try {
    return order_->wait_for_all(std::chrono::steady_clock::now() + patience);
  } catch (const std::exception&) {
    return order_->is_lost();
  }
}

bool Space::open_lane(std::uint32_t lane) noexcept {
  if (index_.has(lane)) {
    return true;
  }
  const Range memory = meta_.add(sizeof(SizeIndex));
  if (!memory) {
    return false;
  }
  index_.open(lane, *new (memory.begin) SizeIndex);
  return true;
}

// Where lane may have what is at the end of a region: at the hole there, if that is for it.
std::byte* Space::end_for(Region& region, std::uint32_t lane) const noexcept {
  HeapRecord* const tail = region.tail_hole();
  return tail != nullptr && may_have(*tail, lane) ? tail->begin() : region.frontier;
}

Region* Space::add_region(std::size_t bytes_min) noexcept {
  bytes_min = round_up(bytes_min, page_);
  std::size_t bytes = std::max(round_up(reservation_, page_), bytes_min);
  Range range;
  while (true) {
    range = source_.reserve(Bytes{bytes});
    counters_.source_calls.add(1);
    if (range || bytes == bytes_min) {
      break;
    }
    bytes = std::max(round_up(bytes / 2, page_), bytes_min);
  }
  if (!range) {
    return nullptr;
  }
  const std::size_t words = PageMap::bytes_for(range.bytes.count() / page_);
  const Range memory = meta_.add(round_up(sizeof(Region), 64) + words);
  if (!memory) {
    source_.release(range);
    counters_.source_calls.add(1);
    return nullptr;
  }
  auto* map = reinterpret_cast<std::uint64_t*>(memory.begin + round_up(sizeof(Region), 64));
  auto* region = new (memory.begin) Region(range, page_, map);
  Region** link = &regions_;
  while (*link != nullptr) {
    link = &(*link)->next;
  }
  *link = region;
  return region;
}

// Undoes add_region, when nothing has been taken from the region and no record was made since.
void Space::drop_last_region() noexcept {
  Region** link = &regions_;
  while ((*link)->next != nullptr) {
    link = &(*link)->next;
  }
  source_.release((*link)->range);
  counters_.source_calls.add(1);
  *link = nullptr;
  meta_.drop_last();
}

HeapRecord* Space::take_growing(std::size_t size, std::size_t align, std::uint32_t lane) noexcept {
  if (!records_.ensure(3)) {
    return nullptr;
  }
  if (HeapRecord* const range = take_trimmed(size, align, lane)) {
    return range;
  }
  Region* region = regions_;
  const auto fits = [&](Region& it) {
    return it.contains(align_up(end_for(it, lane), align), size);
  };
  while (region != nullptr && !fits(*region)) {
    region = region->next;
  }
  const bool is_new = region == nullptr;
  // Asked first, since a reservation is far more work than a refusal.
  if (is_new && (!budget_.has_room(round_up(size, page_)) ||
                 (region = add_region(size + align)) == nullptr)) {
    return nullptr;
  }
  std::byte* begin = align_up(end_for(*region, lane), align);
  if ((begin < region->frontier && !touch(*region, begin, region->frontier)) ||
      !extend(*region, begin, begin + size, lane)) {
    if (is_new) {
      drop_last_region();  // else refusals use up the process's addresses
    }
    return nullptr;
  }
  return carve(*region->edge.prev, begin, size);
}

// Raises the frontier to `to`; the new range is a hole of lane's, with what it may have before it.
// Whole pages below used_from are left uncommitted: a plan places high blocks before low ones.
bool Space::extend(Region& region, std::byte* used_from, std::byte* to,
                   std::uint32_t lane) noexcept {
  const std::size_t page_end = region.page_up(to);
  const std::size_t page_committed = region.page_up(region.committed);
  if (page_end > page_committed) {
    const std::size_t page_first = std::max(page_committed, region.page_down(used_from));
    const Range fresh = region.pages(page_first, page_end);
    if (!budget_.take(fresh.bytes.count())) {
      return false;
    }
    counters_.source_calls.add(1);
    if (!source_.commit(fresh)) {
      budget_.give(fresh.bytes.count());
      return false;
    }
    region.trimmed.assign(page_committed, page_first, true);
    trimmed_pages_ += page_first - page_committed;
    counters_.count_reserved(fresh.bytes.count());
    set_committed(region, fresh.end());
  }
  HeapRecord* tail = region.tail_hole();
  if (tail != nullptr && tail->lane() != lane && may_have(*tail, lane)) {
    index_.erase(*tail);
    give_now(*tail, lane);
    tail = region.tail_hole();
  }
  if (tail != nullptr && tail->lane() == lane) {
    index_.resize(*tail, tail->begin(), static_cast<std::size_t>(to - tail->begin()));
  } else {
    HeapRecord* hole = records_.take();
    hole->data = region.frontier;
    hole->size = static_cast<std::size_t>(to - region.frontier);
    hole->make_hole(lane, 0);
    link_before(region.edge, *hole);
    index_.insert(*hole);
  }
  region.frontier = to;
  return true;
}

// Commits again what has gone back of the pages under [begin, end), all below the frontier.
bool Space::touch(Region& region, std::byte* begin, std::byte* end) noexcept {
  if (trimmed_pages_ == 0) {
    return true;
  }
  const std::size_t first = region.page_down(begin);
  const std::size_t last = region.page_up(end);
  const std::size_t pages = region.trimmed.count(first, last);
  if (pages == 0) {
    return true;
  }
  if (!budget_.take(pages * page_)) {
    return false;
  }
  std::size_t left = pages;
  region.trimmed.for_each_run(first, last, true, [&](std::size_t from, std::size_t to) {
    counters_.source_calls.add(1);
    if (!source_.commit(region.pages(from, to))) {
      return false;
    }
    region.trimmed.assign(from, to, false);
    trimmed_pages_ -= to - from;
    counters_.count_reserved((to - from) * page_);
    left -= to - from;
    return true;
  });
  budget_.give(left * page_);
  return left == 0;
}

// Gives the committed ones of pages [first, last) back. Returns their bytes.
std::size_t Space::decommit(Region& region, std::size_t first, std::size_t last) noexcept {
  std::size_t bytes = 0;
  region.trimmed.for_each_run(first, last, false, [&](std::size_t from, std::size_t to) {
    source_.decommit(region.pages(from, to));
    counters_.source_calls.add(1);
    region.trimmed.assign(from, to, true);
    trimmed_pages_ += to - from;
    bytes += (to - from) * page_;
    return true;
  });
  counters_.reserved.sub(bytes);
  budget_.give(bytes);
  return bytes;
}

void Space::discard(const HeapRecord& range) noexcept {
  constexpr std::size_t worth_a_call = std::size_t{256} << 10;
  if (range.size < worth_a_call || order_ != nullptr) {  // which may use them still
    return;
  }
  const Region& region = *region_of(range.begin(), range.size);
  source_.decommit(region.pages(region.page_up(range.begin()), region.page_down(range.end())));
}

Bytes Space::give_up(HeapRecord& block) noexcept {
  std::byte* const begin = block.begin();
  std::byte* const end = begin + block.bytes.count();
  std::byte* const first = std::min(align_up(begin, page_), end);
  std::byte* const last = std::max(align_up(end + 1, page_) - page_, first);
  std::memset(begin, 0, static_cast<std::size_t>(first - begin));
  std::memset(last, 0, static_cast<std::size_t>(end - last));
  const auto bytes = static_cast<std::size_t>(last - first);
  if (bytes == 0 || block.is_given_up()) {
    return Bytes{0};
  }
  source_.decommit({first, Bytes{bytes}});
  block.mark_given_up();
  counters_.given_up.fetch_add(bytes, std::memory_order_relaxed);
  budget_.give(bytes);
  return Bytes{bytes};
}

// Once more to the source: the holder may have written to the pages since.
void Space::note_given_up(HeapRecord& block) noexcept {
  block.clear_given_up();
  Region& region = *region_of(block.begin(), block.size);
  const std::size_t first = region.page_up(block.begin());
  const std::size_t last = region.page_down(block.begin() + block.bytes.count());
  source_.decommit(region.pages(first, last));
  counters_.source_calls.add(1);
  region.trimmed.assign(first, last, true);
  trimmed_pages_ += last - first;
  const std::size_t bytes = (last - first) * page_;
  counters_.reserved.sub(bytes);
  counters_.given_up.fetch_sub(bytes, std::memory_order_relaxed);
}

// A page goes when all holes that it is part of are idle, whosever they are.
std::size_t Space::trim() noexcept {
  std::size_t bytes = 0;
  has_busy_pages_ = false;
  for (Region* region = regions_; region != nullptr; region = region->next) {
    bytes += lower_frontier(*region);
    HeapRecord* record = region->edge.next;
    while (record != &region->edge) {
      std::byte* const begin = record->begin();
      std::byte* end = begin;
      while (record != &region->edge && record->kind() == RecordKind::hole && is_idle(*record)) {
        end = record->end();
        record = record->next;
      }
      const std::size_t first = region->page_up(begin);
      const std::size_t last = region->page_down(end);
      if (begin == end) {
        has_busy_pages_ = has_busy_pages_ || has_pages(*region, *record);
        record = record->next;
      } else if (first < last) {
        bytes += decommit(*region, first, last);
      }
    }
  }
  EBB_ASSERT_VALID(*this);
  return bytes;
}

// Devices' pages are large, so that much may be committed beyond the last block.
std::size_t Space::largest_hole() const noexcept {
  std::size_t most = index_.largest();
  for (Region* region = regions_; region != nullptr; region = region->next) {
    const HeapRecord* const tail = region->tail_hole();
    const std::byte* const begin = tail != nullptr ? tail->begin() : region->frontier;
    most = std::max(most, static_cast<std::size_t>(region->committed - begin));
  }
  return most;
}

// Whether record is a hole with whole pages of its own.
bool Space::has_pages(const Region& region, const HeapRecord& record) const noexcept {
  const std::size_t first = region.page_up(record.begin());
  const std::size_t last = region.page_down(record.end());
  return record.kind() == RecordKind::hole && first < last &&
         region.trimmed.count(first, last) < last - first;
}

std::size_t Space::lower_frontier(Region& region) noexcept {
  std::size_t bytes = 0;
  HeapRecord* tail = region.tail_hole();
  while (tail != nullptr && is_idle(*tail)) {
    const std::size_t first = region.page_up(tail->begin());
    const std::size_t last = region.page_up(region.committed);
    bytes += decommit(region, first, last);
    region.trimmed.assign(first, last, false);
    trimmed_pages_ -= last - first;
    region.frontier = tail->begin();
    set_committed(region, region.page_at(first));
    index_.erase(*tail);
    drop(*tail);
    tail = region.tail_hole();
  }
  return bytes;
}

// Moves the end of the committed pages. Everything below it that is not handed out is poisoned.
void Space::set_committed(Region& region, std::byte* committed) noexcept {
  std::byte* begin = region.range.begin;
  if (on_host_ && committed != region.committed) {
    remove_root(begin, static_cast<std::size_t>(region.committed - begin));
    add_root(begin, static_cast<std::size_t>(committed - begin));
    if (committed > region.committed) {
      poison(region.committed, static_cast<std::size_t>(committed - region.committed));
    } else {
      unpoison(committed, static_cast<std::size_t>(region.committed - committed));
    }
  }
  region.committed = committed;
}

}  // namespace ebb::inline v0::detail
