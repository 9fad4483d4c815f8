// SPDX-License-Identifier: Apache-2.0
// A second account of what a heap has handed out, kept apart from all that the heap itself goes by:
// it proves that no two live blocks overlap. Only at checks=full; else it does nothing.
// Used by the heap's owner. [alloc.replay]
#pragma once

#include <ebb/alloc/check.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <new>

namespace ebb::inline v0::detail {

class ShadowMap {
 public:
#if EBB_CHECKS >= 2
  // Aborts where the bytes are somebody's. Without memory the account is given up.
  void add(const std::byte* begin, std::size_t bytes) noexcept {
    if (!kept_) {
      return;
    }
    const std::byte* const end = begin + bytes;
    const auto after = ends_.lower_bound(begin);
    EBB_ASSERT(after == ends_.end() || end <= after->first);
    EBB_ASSERT(after == ends_.begin() || std::prev(after)->second <= begin);
    try {
      ends_.emplace_hint(after, begin, end);
    } catch (const std::bad_alloc&) {
      kept_ = false;
      ends_.clear();
    }
  }
  void remove(const std::byte* begin) noexcept {
    if (kept_) {
      EBB_ASSERT(ends_.erase(begin) == 1);
    }
  }

 private:
  std::map<const std::byte*, const std::byte*> ends_;  // by begin
  bool kept_ = true;
#else
  void add(const std::byte* /*begin*/, std::size_t /*bytes*/) noexcept {}
  void remove(const std::byte* /*begin*/) noexcept {}
#endif
};

}  // namespace ebb::inline v0::detail
