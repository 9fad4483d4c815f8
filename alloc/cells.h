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
  // epoch is the pool's, see Pool::cell_epoch.
  CellStore(MetaChunks& meta, void (*construct)(void* cell) noexcept,
            const std::atomic<std::uint64_t>& epoch) noexcept
      : meta_(meta), construct_(construct), epoch_(epoch) {}

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
    // The owner alone writes it, and epochs only grow. Mostly it is the same still, and a look
    // costs less than a write.
    std::atomic<std::uint64_t>& taken_in = chunk_of(cell).entry->taken_in;
    const std::uint64_t epoch = epoch_.load(std::memory_order_relaxed);
    if (taken_in.load(std::memory_order_relaxed) != epoch) {
      taken_in.store(epoch, std::memory_order_relaxed);
    }
    return cell;
  }
  void give(Cell* cell) noexcept {
    cell->next = free_;
    free_ = cell;
  }

  bool has_free() const noexcept { return free_ != nullptr; }
  // How many are taken: counted here, so that taking one counts nothing.
  std::size_t count_live() const noexcept;

  // Visits the cells of all chunks that one was taken from since the epoch since began. Any thread.
  // The heap must not be destroyed meanwhile.
  void for_each(std::uint64_t since, void (*visit)(void* context, Cell* cell), void* context) const;

 private:
  struct Chunk;
  // What a walk reads of each chunk, side by side: taken_in is the last epoch in which one of its
  // cells was taken. Relaxed: who hands a cell's contents to another thread hands this on before.
  struct Entry {
    std::atomic<std::uint64_t> taken_in{0};
    Chunk* chunk = nullptr;
  };
  // A page of entries. used counts those that are filled.
  struct Directory {
    static constexpr std::size_t entries_max = 250;

    Directory* next;
    std::atomic<std::size_t> used{0};
    Entry entries[entries_max];
  };
  static_assert(sizeof(Directory) + MetaChunks::header_bytes <= 4096);

  // Occupies a chunk's first cell. made counts the cells behind it that are constructed.
  struct Chunk {
    Entry* entry;
    std::size_t fits;
    std::atomic<std::size_t> made{0};
  };
  static_assert(sizeof(Chunk) <= cell_bytes.count());

  // Chunks are aligned to their size.
  static Chunk& chunk_of(Cell* cell) noexcept {
    auto* const at = reinterpret_cast<std::byte*>(cell);
    const std::size_t into = reinterpret_cast<std::uintptr_t>(at) % MetaChunks::chunk_bytes;
    return *reinterpret_cast<Chunk*>(at - into + MetaChunks::header_bytes);
  }

  static Cell* cell_at(const Chunk* chunk, std::size_t number) noexcept;
  Cell* make() noexcept;
  Chunk* make_chunk() noexcept;
  Entry* make_entry() noexcept;

  MetaChunks& meta_;
  void (*construct_)(void* cell) noexcept;
  const std::atomic<std::uint64_t>& epoch_;
  std::atomic<Directory*> directories_{nullptr};  // only ever grows, at the front
  Chunk* newest_ = nullptr;                       // where cells are made
  Cell* free_ = nullptr;
  std::size_t made_ = 0;
};

}  // namespace ebb::inline v0::detail
