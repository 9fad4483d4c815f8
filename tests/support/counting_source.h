// SPDX-License-Identifier: Apache-2.0
// A source that counts calls and bytes and checks their arguments: commits and decommits lie within
// reservations, and whatever was reserved is released. Used by tests. Any thread: one lock.
#pragma once

#include <ebb/alloc/source.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace ebb::test {

struct SourceCounts {
  std::uint64_t reserves = 0;
  std::uint64_t releases = 0;
  std::uint64_t commits = 0;
  std::uint64_t decommits = 0;
  Bytes reserved;  // address space held now

  std::uint64_t calls() const { return reserves + releases + commits + decommits; }
};

class CountingSource final : public Source {
 public:
  explicit CountingSource(Source& inner) : inner_(inner) {}

  SourceCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  Range reserve(Bytes bytes) noexcept override {
    const Range range = inner_.reserve(bytes);
    const std::lock_guard lock(mutex_);
    ++counts_.reserves;
    if (range) {
      held_.emplace(range.begin, range.bytes);
      counts_.reserved += range.bytes;
    }
    return range;
  }
  void release(Range range) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      ++counts_.releases;
      const auto entry = held_.find(range.begin);
      demand(entry != held_.end() && entry->second == range.bytes, "release of a foreign range");
      held_.erase(entry);
      counts_.reserved -= range.bytes;
    }
    inner_.release(range);
  }
  bool commit(Range range) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      ++counts_.commits;
      demand(is_within(range), "commit outside a reservation");
    }
    return inner_.commit(range);
  }
  void decommit(Range range) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      ++counts_.decommits;
      demand(is_within(range), "decommit outside a reservation");
    }
    inner_.decommit(range);
  }
  Bytes page_size() const noexcept override { return inner_.page_size(); }
  Device device() const noexcept override { return inner_.device(); }
  const char* name() const noexcept override { return "counting"; }

 private:
  static void demand(bool cond, const char* what) noexcept {
    if (!cond) {
      std::fprintf(stderr, "CountingSource: %s\n", what);
      std::abort();
    }
  }
  bool is_within(Range range) const noexcept {
    const std::size_t page = inner_.page_size().count();
    auto entry = held_.upper_bound(range.begin);
    if (entry == held_.begin() || range.bytes.count() % page != 0) {
      return false;
    }
    --entry;
    return static_cast<std::size_t>(range.begin - entry->first) % page == 0 &&
           range.end() <= entry->first + entry->second.count();
  }

  Source& inner_;
  mutable std::mutex mutex_;
  SourceCounts counts_;
  std::map<std::byte*, Bytes> held_;
};

}  // namespace ebb::test
