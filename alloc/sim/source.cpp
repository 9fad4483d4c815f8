// SPDX-License-Identifier: Apache-2.0
// Committing within a limit, and noticing what goes while it is used. Any thread.
#include "sim/source.h"

#include <algorithm>
#include <new>
#include <utility>

namespace ebb::inline v0 {

SimSource::SimSource(const SimMemoryParts& parts, const SimRange::Use& use, Bytes capacity)
    : parts_(parts),
      use_(use),
      calls_(calls_of(use.is_pinned)),
      name_(use.is_pinned ? "pinned host memory (" + to_string(use.device) + ")"
                          : to_string(use.device)) {
  memory_.capacity = capacity;
}

Range SimSource::reserve(Bytes bytes) noexcept {
  if (!admit(calls_.reserve)) {
    return {};
  }
  std::unique_ptr<SimRange> range = SimRange::reserve(bytes, use_);
  if (range == nullptr) {
    return {};
  }
  try {
    const SimRange& added = parts_.addresses.add(std::move(range));
    return {added.begin(), Bytes{added.bytes()}};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void SimSource::release(Range range) noexcept {
  SimRange* const found = admit(calls_.release, range);
  if (found == nullptr) {
    return;
  }
  decommit_pages(*found, 0, found->pages(), calls_.release);
  parts_.addresses.remove(*found);
}

bool SimSource::commit(Range range) noexcept {
  SimRange* const found = admit(calls_.commit, range);
  if (found == nullptr) {
    return false;
  }
  const std::size_t first = found->page_of(range.begin);
  const std::size_t end = first + range.bytes.count() / use_.page_bytes;
  try {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t> fresh;
    for (std::size_t page = first; page < end; ++page) {
      if (!found->is_committed(page)) {
        fresh.push_back(page);
      }
    }
    return commit_pages(*found, fresh);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// All of them or none. With the lock held.
bool SimSource::commit_pages(SimRange& range, const std::vector<std::size_t>& pages) noexcept {
  const std::size_t wanted = memory_.committed.count() + pages.size() * use_.page_bytes;
  if (wanted > memory_.capacity.count()) {
    return false;
  }
  std::size_t done = 0;
  while (done < pages.size() && range.commit(pages[done])) {
    ++done;
  }
  if (done < pages.size()) {
    while (done-- > 0) {
      range.decommit(pages[done]);
    }
    return false;
  }
  memory_.committed = Bytes{wanted};
  memory_.committed_peak = std::max(memory_.committed_peak, memory_.committed);
  return true;
}

void SimSource::decommit(Range range) noexcept {
  if (SimRange* const found = admit(calls_.decommit, range); found != nullptr) {
    decommit_pages(*found, found->page_of(range.begin), range.bytes.count() / use_.page_bytes,
                   calls_.decommit);
  }
}

void SimSource::set_capacity(Bytes capacity) {
  const std::lock_guard lock(mutex_);
  memory_.capacity = capacity;
}

SimMemory SimSource::memory() const {
  const std::lock_guard lock(mutex_);
  return memory_;
}

SimSource::Calls SimSource::calls_of(bool is_pinned) noexcept {
  return is_pinned
             ? Calls{SimCall::reserve_pinned, SimCall::pin, SimCall::unpin, SimCall::release_pinned}
             : Calls{SimCall::reserve, SimCall::commit, SimCall::decommit, SimCall::release};
}

bool SimSource::admit(SimCall call) noexcept {
  return parts_.gate.try_enter(call, use_.device) && !parts_.captures.try_forbid(use_.device);
}

SimRange* SimSource::admit(SimCall call, Range range) noexcept {
  return admit(call) ? parts_.addresses.find(range.begin) : nullptr;
}

void SimSource::decommit_pages(SimRange& range, std::size_t first, std::size_t count,
                               SimCall call) noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t used = 0;
  for (std::size_t page = first; page < first + count; ++page) {
    if (range.is_committed(page)) {
      used += range.is_used(page) ? 1 : 0;
      range.decommit(page);
      memory_.committed -= Bytes{use_.page_bytes};
    }
  }
  if (used != 0) {
    parts_.gate.note_violation(std::string(name_of(call)) + ": queued work uses " +
                               std::to_string(used) + " pages of " + name_);
  }
}

}  // namespace ebb::inline v0
