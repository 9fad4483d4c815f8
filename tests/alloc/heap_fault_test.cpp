// SPDX-License-Identifier: Apache-2.0
// Every call to the sources of a heap fails once in turn: what failed left nothing behind, and the
// heap works on. DESIGN section 8.
#include "heap_fixture.h"
#include "support/counting_source.h"
#include "support/failing_source.h"

#include <ebb/alloc/pool.h>

#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::CountingSource;
using ebb::test::FailingSource;

namespace {

struct Sources {
  CountingSource counted_pages{ebb::system_source()};
  CountingSource counted_records{ebb::system_source()};
  FailingSource pages{counted_pages};
  FailingSource records{counted_records};

  bool all_given_back() const {
    return counted_pages.counts().reserved == Bytes{0} &&
           counted_records.counts().reserved == Bytes{0};
  }
};

// Takes a block in a way chosen by step, or finds that a refusal changed nothing.
Block take(ebb::Heap& heap, std::size_t step, std::vector<Block>& blocks, int& refusals) {
  const auto before = heap.stats();
  Block block;
  switch (step % 5) {
    case 0:
      block = heap.try_allocate(Bytes{step % 4096});
      break;
    case 1:
      block = heap.try_allocate(Bytes{5000 + step * 100});
      break;
    case 2:
      block = heap.try_allocate(Bytes{6000}, ebb::Align{8192});
      break;
    case 3:
      // Above the region's end often enough to make new regions.
      block = heap.try_allocate(Bytes{300000});
      break;
    default:
      block = blocks.empty() ? heap.try_allocate(Bytes{64})
                             : heap.try_allocate_at(
                                   ebb::test::begin_of(blocks.front()) + (step << 13), Bytes{8192});
  }
  if (!block) {
    // A range at an address may be taken; that is no fault.
    refusals += step % 5 != 4 ? 1 : 0;
    CHECK(heap.stats().live == before.live);
    CHECK(heap.stats().blocks_live == before.blocks_live);
    CHECK(heap.stats().allocations == before.allocations);
  }
  return block;
}

// Returns how many requests were refused for want of memory.
int run_program(ebb::Heap& heap) {
  int refusals = 0;
  std::vector<Block> blocks;
  for (std::size_t step = 0; step < 120; ++step) {
    if (const Block block = take(heap, step, blocks, refusals)) {
      ebb::test::fill(block, reinterpret_cast<std::uintptr_t>(block.data));
      blocks.push_back(block);
    }
    if (step % 7 == 6 && !blocks.empty()) {
      const Block block = blocks[step % blocks.size()];
      CHECK(ebb::test::holds(block, reinterpret_cast<std::uintptr_t>(block.data)));
      heap.deallocate(block);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(step % blocks.size()));
    }
    if (step == 60) {
      heap.trim();
    }
  }
  for (const Block& block : blocks) {
    CHECK(ebb::test::holds(block, reinterpret_cast<std::uintptr_t>(block.data)));
    heap.deallocate(block);
  }
  return refusals;
}

void fail_each_call(FailingSource Sources::*failing, std::uint64_t times) {
  std::uint64_t calls = 0;
  {
    Sources sources;
    ebb::test::OwnHeap own(sources.pages,
                           {.reservation = Bytes{1 << 20}, .records = &sources.records});
    (sources.*failing).never_fail();
    CHECK(run_program(own.heap) == 0);
    calls = (sources.*failing).calls();
  }
  REQUIRE(calls > 0);
  int refused = 0;
  for (std::uint64_t call = 1; call <= calls; ++call) {
    CAPTURE(call);
    Sources sources;
    {
      ebb::test::OwnHeap own(sources.pages,
                             {.reservation = Bytes{1 << 20}, .records = &sources.records});
      (sources.*failing).fail_at(call, times);
      refused += run_program(own.heap);
      (sources.*failing).never_fail();
      CHECK(own.heap.stats().live == Bytes{0});
      // Usable after: the fault is gone, and so are its effects.
      CHECK(run_program(own.heap) == 0);
      own.heap.trim();
      CHECK(own.heap.stats().reserved == Bytes{0});
    }
    CHECK(sources.all_given_back());
  }
  CHECK(refused > 0);  // else this proves nothing
}

}  // namespace

TEST_CASE("heap fault: each refusal of pages leaves nothing behind") {
  fail_each_call(&Sources::pages, 1);
}

TEST_CASE("heap fault: each refusal of pages that lasts leaves nothing behind") {
  fail_each_call(&Sources::pages, 40);
}

TEST_CASE("heap fault: each refusal of record memory leaves nothing behind") {
  fail_each_call(&Sources::records, 1);
  fail_each_call(&Sources::records, 40);
}

TEST_CASE("heap fault: acquiring fails whole at each call, and works after") {
  for (std::uint64_t call = 1; call <= 4; ++call) {
    Sources sources;
    {
      ebb::Pool pool(sources.pages, {.reservation = Bytes{1 << 20}, .records = &sources.records});
      sources.records.fail_at(call);
      try {
        ebb::Pool::park(pool.acquire());
      } catch (const ebb::OutOfMemory&) {
        CHECK(pool.stats().heaps == 0);
        CHECK(sources.all_given_back());
      }
      ebb::Pool::park(pool.acquire());
      CHECK(pool.stats().heaps == 1);
    }
    CHECK(sources.all_given_back());
  }
}

TEST_CASE("heap fault: a cell that cannot be had is null") {
  Sources sources;
  ebb::test::OwnHeap own(sources.pages, {.records = &sources.records});
  sources.records.fail_at(1);
  CHECK(own.heap.take_cell() == nullptr);
  ebb::Cell* cell = own.heap.take_cell();
  REQUIRE(cell != nullptr);
  own.heap.give_cell(cell);
}
