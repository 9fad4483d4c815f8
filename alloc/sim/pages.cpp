// SPDX-License-Identifier: Apache-2.0
// Ranges by the system's mappings: pages that are not committed cannot be touched. Any thread.
#include "sim/pages.h"

#include <cstdint>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace ebb::inline v0 {

namespace {

constexpr int hidden = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Aligned to a page of the device's, which is larger than the system's: reserves more, and gives
// back what lies before and behind.
std::byte* reserve_aligned(std::size_t bytes, std::size_t align) noexcept {
  void* const mapped = ::mmap(nullptr, bytes + align, PROT_NONE, hidden, -1, 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  auto* const raw = static_cast<std::byte*>(mapped);
  const std::size_t over = reinterpret_cast<std::uintptr_t>(raw) % align;
  const std::size_t before = over == 0 ? 0 : align - over;
  if (before != 0) {
    ::munmap(raw, before);
  }
  ::munmap(raw + before + bytes, align - before);
  return raw + before;
}

}  // namespace

std::unique_ptr<SimRange> SimRange::reserve(Bytes bytes, const Use& use) noexcept {
  const std::size_t pages = (bytes.count() + use.page_bytes - 1) / use.page_bytes;
  std::byte* const begin = reserve_aligned(pages * use.page_bytes, use.page_bytes);
  if (begin == nullptr) {
    return nullptr;
  }
  try {
    return std::make_unique<SimRange>(begin, pages, use);
  } catch (const std::bad_alloc&) {
    ::munmap(begin, pages * use.page_bytes);
    return nullptr;
  }
}

SimRange::SimRange(std::byte* begin, std::size_t pages, const Use& use)
    : begin_(begin), pages_(pages), use_(use), state_(std::make_unique<Page[]>(pages)) {}

SimRange::~SimRange() {
  if (is_mapped_) {
    ::munmap(begin_, bytes());
  }
}

void SimRange::unmap() noexcept {
  std::size_t page = 0;
  while (page < pages_ && !is_used(page)) {
    ++page;
  }
  if (page == pages_) {
    ::munmap(begin_, bytes());
    is_mapped_ = false;
  }
}

bool SimRange::commit(std::size_t page) noexcept {
  const int kind = use_.pattern < 0 ? hidden : MAP_PRIVATE | MAP_NORESERVE;
  if (::mmap(begin_ + page * use_.page_bytes, use_.page_bytes, PROT_READ | PROT_WRITE,
             kind | MAP_FIXED, use_.pattern, 0) == MAP_FAILED) {
    return false;
  }
  state_[page].committed.store(true, std::memory_order_relaxed);
  return true;
}

void SimRange::decommit(std::size_t page) noexcept {
  state_[page].committed.store(false, std::memory_order_relaxed);
  if (!is_used(page)) {
    static_cast<void>(::mmap(begin_ + page * use_.page_bytes, use_.page_bytes, PROT_NONE,
                             hidden | MAP_FIXED, -1, 0));
  }
}

bool SimTouch::is_legal() const noexcept {
  bool legal = is_inside;
  for (std::size_t page = first; legal && page < first + count; ++page) {
    legal = range->is_committed(page);
  }
  return legal;
}

void SimTouch::begin_use() const noexcept {
  for (std::size_t page = first; page < first + count; ++page) {
    range->add_use(page);
  }
}

void SimTouch::end_use() const noexcept {
  for (std::size_t page = first; page < first + count; ++page) {
    range->end_use(page);
  }
}

SimRange& SimAddresses::add(std::unique_ptr<SimRange> range) {
  const std::lock_guard lock(mutex_);
  SimRange& added = *range;
  all_.reserve(all_.size() + 1);
  ranges_.emplace(added.begin(), &added);
  all_.push_back(std::move(range));
  return added;
}

void SimAddresses::remove(SimRange& range) noexcept {
  const std::lock_guard lock(mutex_);
  ranges_.erase(range.begin());
  range.unmap();
}

SimRange* SimAddresses::find(const void* address) const noexcept {
  const auto* const at = static_cast<const std::byte*>(address);
  const std::shared_lock lock(mutex_);
  const auto after = ranges_.upper_bound(at);
  if (after == ranges_.begin()) {
    return nullptr;
  }
  SimRange* const range = std::prev(after)->second;
  return at < range->begin() + range->bytes() ? range : nullptr;
}

std::optional<SimTouch> SimAddresses::touch(const void* begin, std::size_t bytes) const {
  SimRange* const range = find(begin);
  if (range == nullptr) {
    return std::nullopt;
  }
  SimTouch touch;
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(begin) - range->begin());
  const std::size_t room = range->bytes() - offset;
  touch.is_inside = bytes <= room;
  if (bytes != 0) {
    touch.first = range->page_of(begin);
    const std::size_t last = touch.is_inside ? offset + bytes - 1 : range->bytes() - 1;
    touch.count = range->page_of(range->begin() + last) - touch.first + 1;
  }
  touch.range = range;
  return touch;
}

}  // namespace ebb::inline v0
