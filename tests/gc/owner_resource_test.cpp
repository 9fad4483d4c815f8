// SPDX-License-Identifier: Apache-2.0
// Standard containers in an owner's memory: counted, reported, and safe when they escape.
// [rt.tensor]
#include "domain_fixture.h"

#include <ebb/gc/owner_resource.h>

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <memory_resource>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

TEST_CASE("pmr: containers live in the iteration, which closes clean once they are gone") {
  DomainFixture f;
  CloseSeries series(f.domain, {.name = "t", .warmup = 0});
  for (int i = 0; i < 5; ++i) {
    OpenOwner it(series, static_cast<std::uint64_t>(i), Place::here());
    {
      std::pmr::memory_resource* const mine = resource_of(it.owner());
      std::pmr::vector<std::pmr::string> words(mine);
      for (int n = 0; n < 200; ++n) {
        words.emplace_back(std::string(static_cast<std::size_t>(n), 'x'));
      }
      CHECK(words[150].get_allocator().resource() == mine);
      std::pmr::unordered_map<int, std::pmr::string> map(mine);
      for (int n = 0; n < 200; ++n) {
        map.emplace(n, std::pmr::string("a value that does not fit the string itself"));
      }
      CHECK(map.at(199).size() == 43);
      std::pmr::monotonic_buffer_resource monotonic(mine);
      std::pmr::vector<double> numbers(1000, 2.5, &monotonic);
      CHECK(numbers[999] == 2.5);
      CHECK(f.domain->memory().blocks_live > 0);
    }
    CHECK(it.close().clean());
    CHECK(f.domain->memory().blocks_live == 0);
  }
}

TEST_CASE("pmr: bytes have the alignment asked for") {
  DomainFixture f;
  std::pmr::memory_resource* const mine = resource_of(f.domain->long_lived());
  for (std::size_t align = 1; align <= 4096; align *= 2) {
    void* const memory = mine->allocate(3 * align, align);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % align == 0);
    std::memset(memory, 1, 3 * align);
    mine->deallocate(memory, 3 * align, align);
  }
  CHECK(f.domain->memory().blocks_live == 0);
}

TEST_CASE("pmr: a container that escapes is a straggler with its place, and is freed later") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 0});
  std::optional<std::pmr::vector<int>> escaped;
  Place place;
  {
    OpenOwner it(series, 0, Place::here());
    place = Place::here();
    escaped.emplace(100, 7, resource_of(it.owner(), place));
    const CloseResult result = it.close();
    CHECK(result.stragglers == 1);
    REQUIRE(result.report->places.size() == 1);
    CHECK(result.report->places[0].place == place);
    CHECK(result.report->places[0].name == "pmr");
  }
  CHECK(f.domain->stats().adopted_live == 1);
  escaped->resize(1000, 8);  // it moves: the new memory is the runtime's
  CHECK((*escaped)[99] == 7);
  CHECK(f.domain->stats().storages_late == 1);
  CHECK(f.domain->stats().adopted_live == 0);
  CHECK(f.domain->stats().storages_live == 1);
  std::jthread([&] { escaped.reset(); }).join();
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("pmr: a container may outlive the runtime, and asking it for more is then refused") {
  std::optional<std::pmr::vector<int>> survivor;
  std::weak_ptr<Domain> domain;
  {
    DomainFixture f;
    domain = f.domain;
    survivor.emplace(100, 7, resource_of(f.domain->long_lived()));
  }
  CHECK_FALSE(domain.expired());
  CHECK((*survivor)[99] == 7);
  CHECK_THROWS_AS(survivor->resize(100000), std::invalid_argument);
  CHECK((*survivor)[99] == 7);
  std::jthread([&] { survivor.reset(); }).join();
  CHECK(domain.expired());
}

TEST_CASE("pmr: an owner's resource is one, other owners have others, none is refused") {
  DomainFixture f;
  CloseSeries series(f.domain, {.name = "t"});
  OpenOwner it(series, 0, Place::here());
  CHECK(resource_of(it.owner()) == resource_of(it.owner()));
  CHECK_FALSE(resource_of(it.owner())->is_equal(*resource_of(f.domain->long_lived())));
  CHECK_THROWS_AS(resource_of(Owner{}), std::invalid_argument);
}
