// SPDX-License-Identifier: Apache-2.0
// The address space of simulated devices and of pinned host memory: which pages are committed, and
// which of them queued work uses. Any thread. [alloc.sim]
#pragma once

#include "backend.h"

#include <ebb/alloc/device.h>
#include <ebb/alloc/source.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace ebb::inline v0 {

// One reserved range of addresses. It lives as long as the machine, since queued work may name it:
// counted references would order queues with each other, and hide races.
class SimRange {
 public:
  // What a range was reserved for. pattern: a file of one page that fresh pages read as, or -1 for
  // zeros.
  struct Use {
    Device device;
    bool is_pinned;
    std::size_t page_bytes;
    int pattern;
  };

  // Returns null where the system refuses. bytes is rounded up to pages.
  static std::unique_ptr<SimRange> reserve(Bytes bytes, const Use& use) noexcept;
  SimRange(std::byte* begin, std::size_t pages, const Use& use);
  SimRange(const SimRange&) = delete;
  SimRange& operator=(const SimRange&) = delete;
  SimRange(SimRange&&) = delete;
  SimRange& operator=(SimRange&&) = delete;
  ~SimRange();

  std::byte* begin() const noexcept { return begin_; }
  std::size_t pages() const noexcept { return pages_; }
  std::size_t bytes() const noexcept { return pages_ * use_.page_bytes; }
  bool is_pinned() const noexcept { return use_.is_pinned; }
  std::size_t page_of(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - begin_) /
           use_.page_bytes;
  }

  bool is_committed(std::size_t page) const noexcept {
    return state_[page].committed.load(std::memory_order_relaxed);
  }
  bool is_used(std::size_t page) const noexcept {
    return state_[page].uses.load(std::memory_order_relaxed) != 0;
  }
  void add_use(std::size_t page) noexcept {
    state_[page].uses.fetch_add(1, std::memory_order_relaxed);
  }
  // Release: the use is over before it is counted off.
  void end_use(std::size_t page) noexcept {
    state_[page].uses.fetch_sub(1, std::memory_order_release);
  }
  // False where the system refuses. With the source's lock held.
  bool commit(std::size_t page) noexcept;
  // The memory of a page that is used stays where it is, for the work to end on.
  void decommit(std::size_t page) noexcept;
  // Gives the addresses back, but not while pages are used: then they stay until the end.
  void unmap() noexcept;

 private:
  // Relaxed: queues look at the first without being ordered after who committed; the second says
  // nothing but that work is over.
  struct Page {
    std::atomic<bool> committed{false};
    std::atomic<std::uint32_t> uses{0};
  };

  std::byte* const begin_;
  const std::size_t pages_;
  const Use use_;
  const std::unique_ptr<Page[]> state_;
  bool is_mapped_ = true;  // written by unmap() only
};

// The part of a range that work reads or writes.
struct SimTouch {
  SimRange* range = nullptr;
  std::size_t first = 0;
  std::size_t count = 0;
  bool is_inside = true;  // else it goes on beyond the range's end

  bool is_legal() const noexcept;
  void begin_use() const noexcept;
  void end_use() const noexcept;
};

// All ranges of a machine.
class SimAddresses {
 public:
  // Throws std::bad_alloc.
  SimRange& add(std::unique_ptr<SimRange> range);
  void remove(SimRange& range) noexcept;
  // Returns the range that address lies in, or null.
  SimRange* find(const void* address) const noexcept;
  // Nothing for memory that is the host's own.
  std::optional<SimTouch> touch(const void* begin, std::size_t bytes) const;

 private:
  // Readers are not ordered with each other by it, as they would be by a plain mutex.
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, SimRange*> ranges_;  // by begin
  std::vector<std::unique_ptr<SimRange>> all_;    // also those that were released
};

}  // namespace ebb::inline v0
