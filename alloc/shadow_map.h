// SPDX-License-Identifier: Apache-2.0
// A second account of what a heap has handed out, kept apart from all that the heap itself goes by:
// it proves that no two live blocks overlap. Only at checks=full; else it does nothing.
// Used by the heap's owner. [alloc.replay]
#pragma once

#include <ebb/alloc/check.h>

#include <cstddef>

#if EBB_CHECKS >= 2
#include <ebb/alloc/source.h>

#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <utility>
#endif

namespace ebb::inline v0::detail {

#if EBB_CHECKS >= 2

// Nodes of one size from pages of the system, so that who counts calls of malloc finds none here.
class ShadowNodes {
 public:
  ShadowNodes() = default;
  ShadowNodes(const ShadowNodes&) = delete;
  ShadowNodes& operator=(const ShadowNodes&) = delete;
  ShadowNodes(ShadowNodes&&) = delete;
  ShadowNodes& operator=(ShadowNodes&&) = delete;
  ~ShadowNodes() {
    while (chunks_ != nullptr) {
      Chunk* const chunk = chunks_;
      chunks_ = chunk->next;
      system_source().release(chunk->range);
    }
  }

  void* take() {
    if (spare_ == nullptr) {
      grow();
    }
    return std::exchange(spare_, spare_->next);
  }
  void give(void* node) noexcept { spare_ = new (node) Spare{spare_}; }

  static constexpr std::size_t node_bytes = 64;

 private:
  struct Spare {
    Spare* next;
  };
  struct alignas(node_bytes) Chunk {
    Chunk* next;
    Range range;
  };

  void grow() {
    constexpr Bytes bytes{std::size_t{64} << 10};
    const Range range = system_source().reserve(bytes);
    if (!range || !system_source().commit(range)) {
      throw std::bad_alloc();
    }
    chunks_ = new (range.begin) Chunk{chunks_, range};
    for (std::byte* at = range.begin + sizeof(Chunk); at + node_bytes <= range.end();
         at += node_bytes) {
      give(at);
    }
  }

  Chunk* chunks_ = nullptr;
  Spare* spare_ = nullptr;
};

template <class T>
struct ShadowAllocator {
  using value_type = T;

  explicit ShadowAllocator(ShadowNodes& its_nodes) noexcept : nodes(&its_nodes) {}
  template <class U>
  ShadowAllocator(const ShadowAllocator<U>& other) noexcept  // NOLINT(google-explicit-constructor)
      : nodes(other.nodes) {}

  T* allocate(std::size_t /*one*/) {
    static_assert(sizeof(T) <= ShadowNodes::node_bytes);
    return static_cast<T*>(nodes->take());
  }
  void deallocate(T* node, std::size_t /*one*/) noexcept { nodes->give(node); }
  bool operator==(const ShadowAllocator&) const = default;

  ShadowNodes* nodes;
};

class ShadowMap {
 public:
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
  using Ends = std::pair<const std::byte* const, const std::byte*>;

  ShadowNodes nodes_;
  std::map<const std::byte*, const std::byte*, std::less<>, ShadowAllocator<Ends>> ends_{
      ShadowAllocator<Ends>(nodes_)};  // by begin
  bool kept_ = true;
};

#else

class ShadowMap {
 public:
  void add(const std::byte* /*begin*/, std::size_t /*bytes*/) noexcept {}
  void remove(const std::byte* /*begin*/) noexcept {}
};

#endif

}  // namespace ebb::inline v0::detail
