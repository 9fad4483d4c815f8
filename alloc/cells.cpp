// SPDX-License-Identifier: Apache-2.0
// How cells are made, and walked over by other threads. [gc.count] needs them to be type-stable.
#include "cells.h"

#include <new>

namespace ebb::inline v0::detail {

Cell* CellStore::cell_at(const Chunk* chunk, std::size_t number) noexcept {
  auto* base = reinterpret_cast<std::byte*>(const_cast<Chunk*>(chunk));
  return reinterpret_cast<Cell*>(base + (number + 1) * cell_bytes.count());
}

Cell* CellStore::make() noexcept {
  Chunk* chunk = chunks_.load(std::memory_order_relaxed);
  if (chunk == nullptr || chunk->made.load(std::memory_order_relaxed) == chunk->fits) {
    const Range range = meta_.add_aligned();
    if (!range) {
      return nullptr;
    }
    const std::size_t fits = range.bytes.count() / cell_bytes.count() - 1;
    chunk = new (range.begin) Chunk{chunk, fits};
    // Pairs with the acquire in for_each: the chunk's header is written.
    chunks_.store(chunk, std::memory_order_release);
  }
  const std::size_t number = chunk->made.load(std::memory_order_relaxed);
  Cell* cell = cell_at(chunk, number);
  if (construct_ != nullptr) {
    construct_(cell);
  } else {
    new (cell) Cell;
  }
  // Pairs with the acquire in for_each: the cell is constructed.
  chunk->made.store(number + 1, std::memory_order_release);
  return cell;
}

void CellStore::for_each(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                         void* context) const {
  for (const Chunk* chunk = chunks_.load(std::memory_order_acquire); chunk != nullptr;
       chunk = chunk->next) {
    if (chunk->taken_in.load(std::memory_order_relaxed) < since) {
      continue;
    }
    const std::size_t made = chunk->made.load(std::memory_order_acquire);
    for (std::size_t number = 0; number < made; ++number) {
      visit(context, cell_at(chunk, number));
    }
  }
}

}  // namespace ebb::inline v0::detail
