// SPDX-License-Identifier: Apache-2.0
// The log's lines: RMM's columns, one whole line per event, no heap call. [alloc.adaptor]
#include "heap_fixture.h"
#include "support/malloc_interposer.h"

#include <ebb/alloc/fault.h>
#include <ebb/alloc/log.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using ebb::Block;
using ebb::Bytes;
using ebb::test::OwnHeap;

namespace {

// Keeps lines without a heap call.
struct Kept {
  std::array<std::array<char, 160>, 16> lines{};
  std::size_t count = 0;

  static void write(void* context, const char* line, std::size_t length) noexcept {
    auto& kept = *static_cast<Kept*>(context);
    if (kept.count < kept.lines.size() && length < 160) {
      std::memcpy(kept.lines[kept.count].data(), line, length);
    }
    ++kept.count;
  }
  std::string line(std::size_t i) const { return lines.at(i).data(); }
};

struct Parsed {
  long thread = 0;
  unsigned hour = 99;
  unsigned minute = 99;
  unsigned second = 99;
  unsigned micros = 0;
  std::string action;
  std::uintptr_t pointer = 1;
  std::size_t size = 0;
  unsigned stream = 99;
  bool whole = false;
};

Parsed parse(const std::string& line) {
  Parsed p;
  char action[32] = {};
  int end = 0;
  const int got = std::sscanf(
      line.c_str(), "%ld,%2u:%2u:%2u.%6u,%31[^,],0x%" SCNxPTR ",%zu,0x%x\n%n", &p.thread, &p.hour,
      &p.minute, &p.second, &p.micros, action, &p.pointer, &p.size, &p.stream, &end);
  p.whole = got == 9 && static_cast<std::size_t>(end) == line.size();
  p.action = action;
  return p;
}

std::vector<std::string> lines_of(std::FILE* file) {
  std::vector<std::string> lines;
  std::rewind(file);
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("log: a line of RMM's columns for each event") {
  OwnHeap own;
  ebb::Fault fault(own.heap, {.at = 2});
  Kept kept;
  ebb::Log log(fault, {Kept::write, &kept});
  const Block block = log.allocate(Bytes{1000}, ebb::Align{64}, ebb::Stream{ebb::cpu, 7});
  CHECK_FALSE(log.try_allocate(Bytes{55}));
  log.deallocate(block);
  REQUIRE(kept.count == 4);
  CHECK(kept.line(0) == "Thread,Time,Action,Pointer,Size,Stream\n");
  const Parsed allocate = parse(kept.line(1));
  CHECK(allocate.whole);
  CHECK(allocate.action == "allocate");
  CHECK(allocate.pointer == reinterpret_cast<std::uintptr_t>(block.data));
  CHECK(allocate.size == 1000);
  CHECK(allocate.stream == 7);
  CHECK(allocate.thread == ::gettid());
  CHECK((allocate.hour < 24 && allocate.minute < 60 && allocate.second < 60));
  const Parsed failure = parse(kept.line(2));
  CHECK(failure.whole);
  CHECK(failure.action == "allocate failure");
  CHECK(failure.pointer == 0);
  CHECK(failure.size == 55);
  const Parsed free = parse(kept.line(3));
  CHECK(free.whole);
  CHECK(free.action == "free");
  CHECK(free.pointer == allocate.pointer);
  CHECK(free.size == 1000);
  CHECK(free.stream == 7);
}

TEST_CASE("log: a sink without a function is refused") {
  OwnHeap own;
  CHECK_THROWS_AS(ebb::Log(own.heap, {}), std::invalid_argument);
}

TEST_CASE("log: lines of several threads stay whole in a file") {
  OwnHeap own;
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::vector<Block> blocks;
  {
    ebb::Log log(own.heap, ebb::fd_sink(::fileno(file)));
    for (std::size_t i = 0; i < 200; ++i) {
      blocks.push_back(log.allocate(Bytes{i}));
    }
    std::vector<std::jthread> crew;
    for (std::size_t t = 0; t < 4; ++t) {
      crew.emplace_back([&, t] {
        for (std::size_t i = t; i < blocks.size(); i += 4) {
          log.deallocate(blocks[i]);
        }
      });
    }
  }
  const std::vector<std::string> lines = lines_of(file);
  CHECK(lines.size() == 401);
  std::size_t frees = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Parsed line = parse(lines[i]);
    CHECK(line.whole);
    frees += line.action == "free" ? 1 : 0;
  }
  CHECK(frees == 200);
  std::fclose(file);
}

TEST_CASE("log: a descriptor that cannot be written stops nothing") {
  OwnHeap own;
  ebb::Log log(own.heap, ebb::fd_sink(-1));
  log.deallocate(log.allocate(Bytes{10}));
  CHECK(own.heap.stats().blocks_live == 0);
}

TEST_CASE("log: writing to a descriptor makes no heap call") {
  OwnHeap own;
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  ebb::Log log(own.heap, ebb::fd_sink(::fileno(file)));
  log.deallocate(log.allocate(Bytes{10}));
  const auto before = ebb::test::heap_calls_of_this_thread();
  for (int i = 0; i < 100; ++i) {
    log.deallocate(log.allocate(Bytes{10}));
  }
  const auto after = ebb::test::heap_calls_of_this_thread();
  CHECK(after.allocations == before.allocations);
  CHECK(after.frees == before.frees);
  std::fclose(file);
}
