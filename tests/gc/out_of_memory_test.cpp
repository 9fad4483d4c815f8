// SPDX-License-Identifier: Apache-2.0
// Refused memory: what the exception says, and that freeing and asking again works.
// [alloc.resource]
#include "domain_fixture.h"

#include <ebb/alloc/error.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using ebb::Bytes;
using ebb::OutOfMemory;
using ebb::Storage;
using namespace ebb::literals;

namespace {

// A domain with a limit, and a thread that makes long-lived storages.
struct Limited {
  explicit Limited(Bytes limit)
      : domain(ebb::Domain::make(
            {.log = [](ebb::LogLevel, std::string_view) {}, .memory_limit = limit})),
        scope(domain->long_lived()) {}
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;
  Limited(Limited&&) = delete;
  Limited& operator=(Limited&&) = delete;
  ~Limited() { domain->shutdown(); }

  std::shared_ptr<ebb::Domain> domain;
  ebb::OwnerScope scope;
};

Storage make(Bytes bytes, std::uint32_t line) {
  return Storage::make(ebb::Owner::current("make"), bytes, ebb::default_align_cpu,
                       {ebb::Place{"train.cpp", line}});
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
}

}  // namespace

TEST_CASE("out of memory: the exception names sizes, limit, and who holds most") {
  Limited limited(8_MiB);
  std::vector<Storage> held;
  for (int i = 0; i < 12; ++i) {
    held.push_back(make(64_KiB, static_cast<std::uint32_t>(100 + i % 6)));
  }
  held.push_back(make(2_MiB, 7));
  held.back().set_name("logits");
  held.push_back(make(1_MiB, 8));
  held.push_back(make(1_MiB, 8));
  Storage hole = make(1_MiB, 9);
  const Storage after = make(64_KiB, 10);
  hole.reset();
  try {
    make(4_MiB, 11);
    FAIL("more was given than the limit allows");
  } catch (const OutOfMemory& error) {
    const ebb::OutOfMemoryInfo& info = error.info();
    CHECK(info.asked == 4_MiB);
    CHECK(info.place == ebb::Place{"train.cpp", 11});
    CHECK(info.limit == 8_MiB);
    CHECK(info.live == 4_MiB + 64_KiB * 13);
    CHECK(info.largest_hole >= 1_MiB);
    CHECK(info.resource == "runtime");
    CHECK(lines_in(info.holders) == 5);
    CHECK(info.holders.find("train.cpp:7  storage, 2 MiB") == 2);
    CHECK(info.holders.find("named \"logits\"") != std::string::npos);
    CHECK(info.holders.find("train.cpp:8  2 x storage") != std::string::npos);
    CHECK(std::string(error.what()).find("[Storage::make] out of memory in \"runtime\"") == 0);
    CHECK(std::string(error.what()).find("train.cpp:7") != std::string::npos);
  }
}

TEST_CASE("out of memory: strings and a storage that grows say who holds most, too") {
  Limited limited(8_MiB);
  Storage held = make(4_MiB, 7);
  const auto holders_of = [](auto request) {
    try {
      request();
    } catch (const OutOfMemory& error) {
      return error.info().holders;
    }
    return std::string("nothing was refused");
  };
  CHECK(holders_of([&] { held.resize(16_MiB); }).find("train.cpp:7  storage, 4 MiB") == 2);
  CHECK(holders_of([] {
          Storage::make_elements(ebb::Owner::current("make"), ebb::element_ops<std::string>,
                                 std::size_t{1} << 20, {ebb::Place{"train.cpp", 9}});
        }).find("train.cpp:7  storage, 4 MiB") == 2);
  CHECK(held.bytes() == 4_MiB);
}

TEST_CASE("out of memory: freeing and asking again works, and the failure left nothing behind") {
  Limited limited(4_MiB);
  for (int round = 0; round < 200; ++round) {
    Storage held = make(3_MiB, 1);
    const ebb::MemoryStats before = limited.domain->memory();
    CHECK_THROWS_AS(make(2_MiB, 2), OutOfMemory);
    CHECK(limited.domain->memory().live == before.live);
    CHECK(limited.domain->memory().blocks_live == before.blocks_live);
    CHECK(limited.domain->stats().storages_live == 1);
    held.reset();
    CHECK(make(2_MiB, 3));
  }
  CHECK(limited.domain->stats().storages_live == 0);
}

TEST_CASE("out of memory: a size that no machine has is refused by name") {
  Limited limited(Bytes{0});
  for (const Bytes size : {Bytes{~std::size_t{0}}, Bytes{~std::size_t{0} - 63},
                           Bytes{std::size_t{1} << 47}, Bytes{std::size_t{1} << 63}}) {
    try {
      make(size, 1);
      FAIL("memory was found");
    } catch (const OutOfMemory& error) {
      CHECK(error.info().asked == size);
      CHECK(error.info().limit == Bytes{0});
    }
  }
  CHECK(limited.domain->stats().storages_live == 0);
  CHECK(make(1_KiB, 2));
}

TEST_CASE("out of memory: resizing and making elements name the holders too") {
  Limited limited(4_MiB);
  Storage held = make(2_MiB, 7);
  Storage small = make(1_KiB, 8);
  const auto holders_of = [](auto&& call) {
    try {
      call();
    } catch (const OutOfMemory& error) {
      return error.info().holders;
    }
    return std::string("nothing was refused");
  };
  const std::string expected = "  train.cpp:7  storage, 2 MiB\n  train.cpp:8  storage, 1 KiB";
  CHECK(holders_of([&] { small.resize(3_MiB); }) == expected);
  CHECK(holders_of([&] {
          Storage::make_elements(limited.domain->long_lived(), ebb::element_ops<std::string>,
                                 std::size_t{1} << 20, {ebb::Place{"train.cpp", 9}});
        }) == expected);
}
