// SPDX-License-Identifier: Apache-2.0
// The driver's handles of events and graphs, by ebb's numbers. Used by the CUDA backend. Any
// thread; those who look something up share the lock.
#pragma once

#include <ebb/alloc/check.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// Sorted, since there are few at a time and numbers grow: adding is at the end or close to it.
template <class Handle>
class NumberTable {
 public:
  // kind is what a message calls the entries.
  explicit NumberTable(const char* kind) : kind_(kind) {}

  void add(std::uint64_t number, const Handle& handle) {
    const std::lock_guard lock(mutex_);
    entries_.insert(place_of(entries_, number), Entry{number, handle});
  }
  // Throws std::invalid_argument for a number that is not here.
  Handle find(std::uint64_t number, const char* function) const {
    const std::shared_lock lock(mutex_);
    const auto entry = place_of(entries_, number);
    EBB_REQUIRE(is_here(entry, number), function, "there is no ", kind_, " ",
                std::to_string(number));
    return entry->handle;
  }
  // Returns what was there, if anything was.
  std::optional<Handle> remove(std::uint64_t number) noexcept {
    const std::lock_guard lock(mutex_);
    const auto entry = place_of(entries_, number);
    if (!is_here(entry, number)) {
      return std::nullopt;
    }
    const Handle handle = entry->handle;
    entries_.erase(entry);
    return handle;
  }
  // The same for any of them: nothing once none is left.
  std::optional<Handle> remove_last() noexcept {
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) {
      return std::nullopt;
    }
    const Handle handle = entries_.back().handle;
    entries_.pop_back();
    return handle;
  }

 private:
  struct Entry {
    std::uint64_t number;
    Handle handle;
  };

  template <class Entries>
  static auto place_of(Entries& entries, std::uint64_t number) {
    return std::lower_bound(entries.begin(), entries.end(), number,
                            [](const Entry& entry, std::uint64_t n) { return entry.number < n; });
  }
  bool is_here(typename std::vector<Entry>::const_iterator entry, std::uint64_t number) const {
    return entry != entries_.end() && entry->number == number;
  }

  const char* const kind_;
  mutable std::shared_mutex mutex_;
  std::vector<Entry> entries_;  // guarded by mutex_
};

}  // namespace ebb::inline v0
