// SPDX-License-Identifier: Apache-2.0
// How cells are made, and walked over by other threads. [gc.count] needs them to be type-stable.
#include "cells.h"

#include <new>
#include <span>

namespace ebb::inline v0::detail {

Cell* CellStore::cell_at(const Chunk* chunk, std::size_t number) noexcept {
  auto* base = reinterpret_cast<std::byte*>(const_cast<Chunk*>(chunk));
  return reinterpret_cast<Cell*>(base + (number + 1) * cell_bytes.count());
}

CellStore::Entry* CellStore::make_entry() noexcept {
  Directory* directory = directories_.load(std::memory_order_relaxed);
  if (directory == nullptr ||
      directory->used.load(std::memory_order_relaxed) == Directory::entries_max) {
    const Range range = meta_.add(sizeof(Directory));
    if (!range) {
      return nullptr;
    }
    directory = new (range.begin) Directory{directory, 0, {}};
    // Pairs with the acquire in for_each: the directory is written.
    directories_.store(directory, std::memory_order_release);
  }
  return &directory->entries[directory->used.load(std::memory_order_relaxed)];
}

CellStore::Chunk* CellStore::make_chunk() noexcept {
  Entry* const entry = make_entry();
  const Range range = entry != nullptr ? meta_.add_aligned() : Range{};
  if (!range) {
    return nullptr;
  }
  const std::size_t fits = range.bytes.count() / cell_bytes.count() - 1;
  entry->chunk = new (range.begin) Chunk{entry, fits};
  Directory& directory = *directories_.load(std::memory_order_relaxed);
  // Pairs with the acquire in for_each: the entry and the chunk's header are written.
  directory.used.store(directory.used.load(std::memory_order_relaxed) + 1,
                       std::memory_order_release);
  return entry->chunk;
}

Cell* CellStore::make() noexcept {
  if (newest_ == nullptr || newest_->made.load(std::memory_order_relaxed) == newest_->fits) {
    Chunk* const chunk = make_chunk();
    if (chunk == nullptr) {
      return nullptr;
    }
    newest_ = chunk;
  }
  const std::size_t number = newest_->made.load(std::memory_order_relaxed);
  Cell* cell = cell_at(newest_, number);
  if (construct_ != nullptr) {
    construct_(cell);
  } else {
    new (cell) Cell;
  }
  ++made_;
  // Pairs with the acquire in for_each: the cell is constructed.
  newest_->made.store(number + 1, std::memory_order_release);
  return cell;
}

std::size_t CellStore::count_live() const noexcept {
  std::size_t live = made_;
  for (const Cell* cell = free_; cell != nullptr; cell = cell->next) {
    --live;
  }
  return live;
}

void CellStore::for_each(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                         void* context) const {
  for (const Directory* directory = directories_.load(std::memory_order_acquire);
       directory != nullptr; directory = directory->next) {
    const std::size_t used = directory->used.load(std::memory_order_acquire);
    for (const Entry& entry : std::span(directory->entries, used)) {
      if (entry.taken_in.load(std::memory_order_relaxed) < since) {
        continue;
      }
      const std::size_t made = entry.chunk->made.load(std::memory_order_acquire);
      for (std::size_t number = 0; number < made; ++number) {
        visit(context, cell_at(entry.chunk, number));
      }
    }
  }
}

}  // namespace ebb::inline v0::detail
