// SPDX-License-Identifier: Apache-2.0
// Memory by bare address: counted by its iteration, and freed by address and size. [rt.tensor]
#include "domain_fixture.h"

#include <ebb/gc/raw_memory.h>

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::DomainFixture;

TEST_CASE("raw memory: belongs to the iteration until it is freed") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 0});
  OpenOwner it(series, 0, Place::here());
  const Place place = Place::here();
  const RawMemory raw(it.owner(), place);
  char* const first = raw.allocate(1000);
  char* const second = raw.allocate(0);
  CHECK(first != second);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
  std::memset(first, 1, 1000);
  raw.deallocate(first, 1000);
  const CloseResult result = it.close();
  CHECK(result.stragglers == 1);
  CHECK(result.report->places[0].place == place);
  raw.deallocate(second, 0);  // late, but whole
  CHECK(f.domain->stats().adopted_live == 0);
  CHECK(f.domain->memory().blocks_live == 0);
}

TEST_CASE("raw memory: a wrong address or size frees nothing") {
  DomainFixture f;
  const RawMemory raw(f.domain->long_lived());
  char* const data = raw.allocate(100);
  CHECK_THROWS_AS(raw.deallocate(data + 1, 100), std::invalid_argument);
  CHECK_THROWS_AS(raw.deallocate(data, 99), std::invalid_argument);
  CHECK_THROWS_AS(raw.deallocate(nullptr, 0), std::invalid_argument);
  CHECK(f.domain->memory().blocks_live == 1);
  raw.deallocate(data, 100);
  CHECK_THROWS_AS(raw.deallocate(data, 100), std::invalid_argument);
  CHECK(f.domain->memory().blocks_live == 0);
  CHECK_THROWS_AS(RawMemory(Owner{}), std::invalid_argument);
}

TEST_CASE("raw memory: one thread's is freed by another's, also when the runtime is gone") {
  auto f = std::make_unique<DomainFixture>();
  const std::weak_ptr<Domain> domain = f->domain;
  std::optional<RawMemory> raw(std::in_place, f->domain->long_lived());
  std::vector<char*> blocks;
  for (std::size_t i = 0; i < 300; ++i) {
    blocks.push_back(raw->allocate(i));
  }
  f.reset();
  CHECK_FALSE(domain.expired());
  std::jthread([&] {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      raw->deallocate(blocks[i], i);
    }
  }).join();
  CHECK(domain.expired());
}
