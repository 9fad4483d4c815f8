// SPDX-License-Identifier: Apache-2.0
// Cells: constructed once, reused, and readable by others while they are made. ThreadSanitizer
// runs this too. [gc.count] builds on it.
#include "heap_fixture.h"

#include <ebb/alloc/pool.h>

#include <atomic>
#include <new>
#include <set>
#include <thread>
#include <vector>

using ebb::Cell;
using ebb::test::OwnHeap;

namespace {

struct Struct : Cell {
  std::atomic<std::uint64_t> word{42};
  std::atomic<std::uint64_t> uses{0};
};
static_assert(sizeof(Struct) <= ebb::cell_bytes.count());

std::atomic<std::uint64_t> constructed{0};

ebb::PoolOptions with_structs() {
  ebb::PoolOptions options;
  options.construct_cell = [](void* cell) noexcept {
    new (cell) Struct;
    ++constructed;
  };
  return options;
}

}  // namespace

TEST_CASE("cells: each is constructed once and keeps its state between uses") {
  constructed = 0;
  OwnHeap own(with_structs());
  Cell* first = own.heap.take_cell();
  static_cast<Struct*>(first)->word = 7;
  own.heap.give_cell(first);
  Cell* again = own.heap.take_cell();
  CHECK(again == first);
  CHECK(static_cast<Struct*>(again)->word == 7);
  CHECK(constructed == 1);
  own.heap.give_cell(again);
}

TEST_CASE("cells: distinct, aligned to a cache line, and all visited") {
  constructed = 0;
  OwnHeap own(with_structs());
  std::set<Cell*> cells;
  for (int i = 0; i < 1000; ++i) {
    Cell* cell = own.heap.take_cell();
    CHECK(reinterpret_cast<std::uintptr_t>(cell) % 64 == 0);
    cells.insert(cell);
  }
  CHECK(cells.size() == 1000);
  CHECK(constructed == 1000);
  std::size_t given = 0;
  for (Cell* cell : cells) {
    if (++given % 2 == 0) {
      own.heap.give_cell(cell);
    }
  }
  std::set<Cell*> seen;
  own.pool.for_each_cell(
      0, [](void* context, Cell* cell) { static_cast<std::set<Cell*>*>(context)->insert(cell); },
      &seen);
  CHECK(seen == cells);
  given = 0;
  for (Cell* cell : cells) {
    if (++given % 2 != 0) {
      own.heap.give_cell(cell);
    }
  }
}

TEST_CASE(
    "cells: a walk since an epoch sees what was taken since, and leaves most of the rest out") {
  OwnHeap own(with_structs());
  std::vector<Cell*> old;
  for (int i = 0; i < 2000; ++i) {
    old.push_back(own.heap.take_cell());
  }
  own.pool.begin_cell_epoch();
  const std::uint64_t since = own.pool.cell_epoch();
  const auto walk = [&](std::uint64_t from) {
    std::set<Cell*> seen;
    own.pool.for_each_cell(
        from,
        [](void* context, Cell* cell) { static_cast<std::set<Cell*>*>(context)->insert(cell); },
        &seen);
    return seen;
  };
  CHECK(walk(since).empty());
  own.heap.give_cell(old.front());
  Cell* const reused = own.heap.take_cell();
  CHECK(reused == old.front());
  Cell* const fresh = own.heap.take_cell();
  const std::set<Cell*> seen = walk(since);
  CHECK(seen.contains(reused));
  CHECK(seen.contains(fresh));
  CHECK(seen.size() < 600);  // two chunks
  CHECK(walk(0).size() == 2001);
  own.heap.give_cell(fresh);
  for (Cell* cell : old) {
    own.heap.give_cell(cell);
  }
}

TEST_CASE("cells: given back by another thread, they return to their heap") {
  OwnHeap own(with_structs());
  std::vector<Cell*> cells;
  cells.reserve(300);
  for (int i = 0; i < 300; ++i) {
    cells.push_back(own.heap.take_cell());
  }
  const std::set<Cell*> before(cells.begin(), cells.end());
  std::jthread([&] {
    for (Cell* cell : cells) {
      own.heap.give_cell(cell);
    }
  }).join();
  own.heap.drain();
  for (Cell*& cell : cells) {
    cell = own.heap.take_cell();
  }
  CHECK(std::set<Cell*>(cells.begin(), cells.end()) == before);
  for (Cell* cell : cells) {
    own.heap.give_cell(cell);
  }
}

TEST_CASE("cells: others walk over them while heaps and cells are made") {
  ebb::Pool pool(ebb::system_source(), with_structs());
  std::atomic<bool> done{false};
  std::uint64_t bad = 0;
  std::uint64_t walks = 0;
  std::jthread reader([&] {
    do {
      pool.for_each_cell(
          0,
          [](void* context, Cell* cell) {
            const std::uint64_t word = static_cast<Struct*>(cell)->word.load();
            *static_cast<std::uint64_t*>(context) += word != 42 && word != 43 ? 1u : 0u;
          },
          &bad);
      ++walks;
    } while (!done);
  });
  std::vector<std::jthread> writers;
  writers.reserve(3);
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&] {
      ebb::Heap& heap = pool.acquire();
      std::vector<Cell*> cells;
      for (std::uint64_t i = 0; i < ebb::test::stress(20000) / 20; ++i) {
        cells.push_back(heap.take_cell());
        static_cast<Struct*>(cells.back())->word = 43;
        if (i % 3 == 0) {
          heap.give_cell(cells.front());
          cells.erase(cells.begin());
        }
      }
      for (Cell* cell : cells) {
        heap.give_cell(cell);
      }
      ebb::Pool::park(heap);
    });
  }
  writers.clear();
  done = true;
  reader.join();
  CHECK(bad == 0);
  CHECK(walks > 0);
}
