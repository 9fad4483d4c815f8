// SPDX-License-Identifier: Apache-2.0
// Which addresses a source has reserved, and under which of them there are pages. Used by the
// sources of the CUDA backend. Any thread.
#pragma once

#include <ebb/alloc/source.h>

#include <cstddef>
#include <map>
#include <shared_mutex>
#include <vector>

namespace ebb::inline v0 {

class PageRecord {
 public:
  // Ranges are whole pages, and pages of one reserved range.
  explicit PageRecord(std::size_t page_bytes) : page_bytes_(page_bytes) {}

  // False when there is no memory for it.
  bool add(Range range) noexcept;
  void remove(Range range) noexcept;
  // There are pages under range now.
  void mark(Range range) noexcept;
  // Calls give for each page under range that was there, and is not any more.
  template <class Give>
  void take(Range range, Give give) noexcept {
    for (std::byte* begin = range.begin; begin != range.end(); begin += page_bytes_) {
      if (unmark(begin)) {
        give(Range{begin, Bytes{page_bytes_}});
      }
    }
  }
  // Whether address lies in a reserved range.
  bool holds(const void* address) const noexcept;

 private:
  struct Reserved {
    const std::byte* end;
    std::vector<bool> has_page;
  };

  bool unmark(const std::byte* begin) noexcept;
  std::vector<bool>::reference page_at(const std::byte* begin) noexcept;

  const std::size_t page_bytes_;
  // Guards what follows; held for no call of the driver's.
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, Reserved> reserved_;  // by begin
};

}  // namespace ebb::inline v0
