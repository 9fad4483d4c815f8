// SPDX-License-Identifier: Apache-2.0
// The cells of a heap: type-stable memory for the layer above's structs. Taken by the heap's owner;
// the walk over all cells runs on any thread.
#pragma once

#include "meta_chunks.h"

#include <ebb/alloc/heap.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

class CellStore {
 public:
  CellStore(MetaChunks& meta, void (*construct)(void* cell) noexcept) noexcept
      : meta_(meta), construct_(construct) {}

  Cell* take() noexcept {
    Cell* cell = free_;
    if (cell == nullptr) [[unlikely]] {
      cell = make();
      if (cell == nullptr) {
        return nullptr;
      }
    } else {
      free_ = cell->next;
    }
    ++live_;
    return cell;
  }
  void give(Cell* cell) noexcept {
    cell->next = free_;
    free_ = cell;
    --live_;
  }

  bool has_free() const noexcept { return free_ != nullptr; }
  std::size_t live() const noexcept { return live_; }

  // Any thread. The heap must not be destroyed meanwhile.
  void for_each(void (*visit)(void* context, Cell* cell), void* context) const;

 private:
  // Occupies a chunk's first cell. made counts the cells behind it that are constructed.
  struct Chunk {
    Chunk* next;
    std::size_t fits;
    std::atomic<std::size_t> made;
  };
  static_assert(sizeof(Chunk) <= cell_bytes.count());

  static Cell* cell_at(const Chunk* chunk, std::size_t number) noexcept;
  Cell* make() noexcept;

  MetaChunks& meta_;
  void (*construct_)(void* cell) noexcept;
  std::atomic<Chunk*> chunks_{nullptr};  // only ever grows, at the front
  Cell* free_ = nullptr;
  std::size_t live_ = 0;
};

}  // namespace ebb::inline v0::detail
