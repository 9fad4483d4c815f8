// SPDX-License-Identifier: Apache-2.0
// Chunks of pages for a heap's own records, given back all at once when the heap dies.
// Used by the heap's owner.
#pragma once

#include "heap_counters.h"
#include "poison.h"
#include "region.h"

#include <ebb/alloc/source.h>

#include <cstddef>
#include <new>

namespace ebb::inline v0::detail {

class MetaChunks {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
  static constexpr std::size_t header_bytes = 64;

  MetaChunks(Source& source, HeapCounters& counters) noexcept
      : source_(source), counters_(counters) {}
  MetaChunks(const MetaChunks&) = delete;
  MetaChunks& operator=(const MetaChunks&) = delete;
  MetaChunks(MetaChunks&&) = delete;
  MetaChunks& operator=(MetaChunks&&) = delete;
  ~MetaChunks() {
    while (chunks_ != nullptr) {
      drop_last();
    }
  }

  // Returns at least bytes of zeros, header_bytes behind an address that is a multiple of align (a
  // power of two), or an empty range.
  Range add(std::size_t bytes, std::size_t align = header_bytes) noexcept {
    const std::size_t page = source_.page_size().count();
    const std::size_t size = round_up(bytes + header_bytes, page);
    const Range range = source_.reserve(Bytes{align > page ? size + align - page : size});
    counters_.source_calls.add(1);
    if (!range) {
      return {};
    }
    const Range used{align_up(range.begin, align), Bytes{size}};
    counters_.source_calls.add(1);
    if (!source_.commit(used)) {
      source_.release(range);
      return {};
    }
    chunks_ = new (used.begin) Chunk{chunks_, range, used};
    // Records lead to their heap, and cells hold owning pointers that nothing else leads to.
    add_root(used.begin, used.bytes.count());
    return {used.begin + header_bytes, Bytes{used.bytes.count() - header_bytes}};
  }
  Range add() noexcept { return add(chunk_bytes - header_bytes); }
  // A chunk that every address within it leads to.
  Range add_aligned() noexcept { return add(chunk_bytes - header_bytes, chunk_bytes); }
  // Gives the chunk back that was added last.
  void drop_last() noexcept {
    const Chunk last = *chunks_;
    chunks_ = last.next;
    remove_root(last.used.begin, last.used.bytes.count());
    source_.release(last.range);
    counters_.source_calls.add(1);
  }

 private:
  struct Chunk {
    Chunk* next;
    Range range;  // reserved
    Range used;   // committed
  };
  static_assert(sizeof(Chunk) <= header_bytes);

  Source& source_;
  HeapCounters& counters_;
  Chunk* chunks_ = nullptr;
};

}  // namespace ebb::inline v0::detail
