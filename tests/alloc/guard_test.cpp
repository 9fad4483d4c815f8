// SPDX-License-Identifier: Apache-2.0
// What the guard finds, and that it leaves correct programs alone. [alloc.adaptor]
#include "heap_fixture.h"
#include "support/abort.h"

#include <ebb/alloc/guard.h>
#include <ebb/alloc/stats_adaptor.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::Guard;
using ebb::GuardFault;
using ebb::GuardReport;
using ebb::test::OwnHeap;

namespace {

using Sizes = std::initializer_list<std::size_t>;

struct Reports {
  std::vector<GuardReport> all;

  static void add(void* context, const GuardReport& report) noexcept {
    static_cast<Reports*>(context)->all.push_back(report);
  }
};

struct Guarded {
  explicit Guarded(ebb::GuardOptions options = {}) : guard(bottom, with_reports(options)) {}

  ebb::GuardOptions with_reports(ebb::GuardOptions options) {
    options.report = Reports::add;
    options.context = &reports;
    return options;
  }

  OwnHeap own{ebb::PoolOptions{.name = "below"}};
  ebb::Stats bottom{own.heap};
  Reports reports;
  Guard guard;
};

unsigned char* bytes_of(const Block& block) {
  return static_cast<unsigned char*>(block.data);
}

}  // namespace

TEST_CASE("guard: fresh bytes are filled, and a sound block is not reported") {
  Guarded g;
  for (const std::size_t align : Sizes{1, 8, 64, 4096, 65536}) {
    for (const std::size_t size : Sizes{0, 1, 31, 64, 5000}) {
      const Block block = g.guard.allocate(Bytes{size}, ebb::Align{align});
      CHECK(reinterpret_cast<std::uintptr_t>(block.data) % align == 0);
      CHECK(block.bytes == Bytes{size});
      for (std::size_t i = 0; i < size; ++i) {
        REQUIRE(bytes_of(block)[i] == Guard::fresh_byte);
      }
      ebb::test::fill(block, 3);
      g.guard.deallocate(block);
    }
  }
  g.guard.flush();
  CHECK(g.reports.all.empty());
  CHECK(g.bottom.figures().blocks.current == 0);
}

TEST_CASE("guard: a byte written just outside is reported with its offset") {
  for (const std::ptrdiff_t offset : {-1, -32, 100, 131}) {
    Guarded g;
    const Block block = g.guard.allocate(Bytes{100});
    bytes_of(block)[offset] ^= 1;
    g.guard.deallocate(block);
    REQUIRE(g.reports.all.size() == 1);
    const GuardReport& report = g.reports.all[0];
    CHECK(report.fault == (offset < 0 ? GuardFault::damaged_before : GuardFault::damaged_after));
    CHECK(report.offset == offset);
    CHECK(report.data == block.data);
    CHECK(report.bytes == Bytes{100});
    CHECK(std::string(report.resource) == "stats");
  }
}

TEST_CASE("guard: a write after the end of a block is found when it leaves quarantine") {
  Guarded g({.quarantine = 2});
  const Block block = g.guard.allocate(Bytes{100});
  g.guard.deallocate(block);
  CHECK(bytes_of(block)[50] == Guard::freed_byte);
  bytes_of(block)[50] = 1;
  g.guard.deallocate(g.guard.allocate(Bytes{10}));
  CHECK(g.reports.all.empty());
  g.guard.deallocate(g.guard.allocate(Bytes{10}));
  REQUIRE(g.reports.all.size() == 1);
  CHECK(g.reports.all[0].fault == GuardFault::written_after_free);
  CHECK(g.reports.all[0].offset == 50);
  g.guard.flush();
  CHECK(g.bottom.figures().blocks.current == 0);
}

TEST_CASE("guard: a block given back twice is reported and freed once") {
  Guarded g;
  const Block block = g.guard.allocate(Bytes{100});
  g.guard.deallocate(block);
  g.guard.deallocate(block);
  REQUIRE(g.reports.all.size() == 1);
  CHECK(g.reports.all[0].fault == GuardFault::freed_twice);
  g.guard.flush();
  g.guard.deallocate(block);  // the heap's records stay, so this is found as well
  CHECK(g.reports.all.size() == 2);
  CHECK(g.bottom.figures().blocks.current == 0);
}

TEST_CASE("guard: a block of another resource is reported and left alone") {
  Guarded g;
  const Block block = g.own.heap.allocate(Bytes{100});
  g.guard.deallocate(block);
  REQUIRE(g.reports.all.size() == 1);
  CHECK(g.reports.all[0].fault == GuardFault::foreign);
  g.own.heap.deallocate(block);
  g.guard.deallocate(Block{});
  CHECK(g.reports.all.back().fault == GuardFault::foreign);
}

TEST_CASE("guard: the quarantine keeps so many blocks and bytes, and no more") {
  Guarded g({.quarantine = 3, .quarantine_bytes = Bytes{1000}});
  for (int i = 0; i < 10; ++i) {
    g.guard.deallocate(g.guard.allocate(Bytes{10}));
  }
  CHECK(g.bottom.figures().blocks.current == 3);
  g.guard.deallocate(g.guard.allocate(Bytes{990}));
  CHECK(g.bottom.figures().blocks.current == 2);  // 990 and 10
  g.guard.deallocate(g.guard.allocate(Bytes{1001}));
  CHECK(g.bottom.figures().blocks.current == 2);  // too large to keep
  CHECK(g.guard.flush() == 2);
  CHECK(g.guard.flush() == 0);
  CHECK(g.bottom.figures().blocks.current == 0);
}

TEST_CASE("guard: without a quarantine a block is released at once") {
  Guarded g({.quarantine = 0});
  g.guard.deallocate(g.guard.allocate(Bytes{10}));
  CHECK(g.bottom.figures().blocks.current == 0);
  CHECK_THROWS_AS(Guard(g.own.heap, {.quarantine = Guard::quarantine_max + 1}),
                  std::invalid_argument);
}

TEST_CASE("guard: a full quarantine holds as many as it may") {
  Guarded g({.quarantine = Guard::quarantine_max});
  for (std::size_t i = 0; i < 3 * Guard::quarantine_max; ++i) {
    g.guard.deallocate(g.guard.allocate(Bytes{10}));
  }
  CHECK(g.bottom.figures().blocks.current == Guard::quarantine_max);
  CHECK(g.guard.flush() == Guard::quarantine_max);
}

TEST_CASE("guard: what lies in quarantine is given up before a request is refused") {
  OwnHeap own({.limit = Bytes{2 << 20}});
  Guard guard(own.heap);
  for (int i = 0; i < 3; ++i) {
    guard.deallocate(guard.allocate(Bytes{500 << 10}));
  }
  const Block block = guard.try_allocate(Bytes{1500 << 10});
  CHECK(block);
  guard.deallocate(block);
}

TEST_CASE("guard: its end releases what is in quarantine") {
  OwnHeap own;
  {
    Guard guard(own.heap);
    guard.deallocate(guard.allocate(Bytes{100}));
    CHECK(own.heap.stats().blocks_live == 1);
  }
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("guard: blocks of a device pass through untouched") {
  Guarded g;
  const ebb::Stream stream{{ebb::DeviceKind::sim, 0}, 1};
  const Block block = g.guard.allocate(Bytes{100}, ebb::Align{64}, stream);
  CHECK(g.bottom.figures().bytes.current == 100);  // nothing around it
  CHECK(block.data == block.record->data);
  g.guard.deallocate(block);
  CHECK(g.bottom.figures().blocks.current == 0);  // no quarantine
}

TEST_CASE("guard: without a report function it says what it found and aborts") {
  OwnHeap own({.name = "below"});
  Guard guard(own.heap);
  const Block block = guard.allocate(Bytes{100});
  const std::string text = ebb::test::abort_message([&] {
    bytes_of(block)[100] = 1;
    guard.deallocate(block);
  });
  CHECK(text.find("aborted") == 0);
  CHECK(text.find("bytes after the block were written") != std::string::npos);
  CHECK(text.find("100 B in \"below\"") != std::string::npos);
  guard.deallocate(block);
}
