// SPDX-License-Identifier: Apache-2.0
// Reserved ranges in a map, pages as bits. Any thread: one lock.
#include "cuda/page_record.h"

#include <ebb/alloc/check.h>

#include <iterator>
#include <mutex>
#include <new>

namespace ebb::inline v0 {

bool PageRecord::add(Range range) noexcept {
  try {
    Reserved reserved{range.end(), std::vector<bool>(range.bytes.count() / page_bytes_)};
    const std::lock_guard lock(mutex_);
    reserved_.emplace(range.begin, std::move(reserved));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void PageRecord::remove(Range range) noexcept {
  const std::lock_guard lock(mutex_);
  reserved_.erase(range.begin);
}

void PageRecord::mark(Range range) noexcept {
  const std::lock_guard lock(mutex_);
  for (const std::byte* begin = range.begin; begin != range.end(); begin += page_bytes_) {
    page_at(begin) = true;
  }
}

bool PageRecord::unmark(const std::byte* begin) noexcept {
  const std::lock_guard lock(mutex_);
  std::vector<bool>::reference page = page_at(begin);
  const bool was_there = page;
  page = false;
  return was_there;
}

bool PageRecord::holds(const void* address) const noexcept {
  const std::shared_lock lock(mutex_);
  const auto after = reserved_.upper_bound(static_cast<const std::byte*>(address));
  return after != reserved_.begin() && address < std::prev(after)->second.end;
}

// With the lock held.
std::vector<bool>::reference PageRecord::page_at(const std::byte* begin) noexcept {
  const auto after = reserved_.upper_bound(begin);
  EBB_ASSERT(after != reserved_.begin());
  const auto entry = std::prev(after);
  return entry->second.has_page[static_cast<std::size_t>(begin - entry->first) / page_bytes_];
}

}  // namespace ebb::inline v0
