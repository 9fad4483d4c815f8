// SPDX-License-Identifier: Apache-2.0
// Hooks that a close runs before it waits, for languages whose garbage holds tensors. [gc.close]
#include "domain_fixture.h"
#include "running_clock.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;
using ebb::test::RunningClock;

TEST_CASE("on_collect: garbage that the hook drops is not waited for") {
  DomainFixture f;  // the clock stands still: a wait would hang
  CloseSeries series(f.domain, {.warmup = 0});
  std::vector<Storage> garbage;
  int runs = 0;
  series.on_collect([&] {
    ++runs;
    garbage.clear();
  });
  for (std::uint64_t i = 0; i < 3; ++i) {
    OpenOwner it(series, i, Place::here());
    garbage.push_back(DomainFixture::make());
    CHECK(it.close().clean());
  }
  CHECK(runs == 3);
  OpenOwner it(series, 3, Place::here());
  CHECK(it.close().clean());
  CHECK(runs == 3);  // with nothing alive there is nothing to collect
}

TEST_CASE("on_collect: places that straggled last time do not pay for a collection each time") {
  DomainFixture f;
  const RunningClock running(f.clock);
  CloseSeries series(f.domain, {.warmup = 0});
  int runs = 0;
  series.on_collect([&] { ++runs; });
  Storage gradient;
  for (std::uint64_t i = 0; i < 10; ++i) {
    OpenOwner it(series, i, Place::here());
    gradient = DomainFixture::make(64_B, Place{"model.cpp", 7});
    CHECK(it.close().stragglers == 1);
  }
  CHECK(runs == 1);
}

TEST_CASE("on_collect: hooks run in order, and what one throws the close throws") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  Storage garbage;
  std::vector<int> order;
  series.on_collect([&] {
    order.push_back(1);
    throw std::runtime_error("the collector failed");
  });
  series.on_collect([&] {
    order.push_back(2);
    garbage.reset();
  });
  OpenOwner it(series, 0, Place::here());
  garbage = DomainFixture::make();
  CHECK_THROWS_WITH_AS(it.close(), "the collector failed", std::runtime_error);
  CHECK_FALSE(it.is_open());
  CHECK(order == std::vector<int>{1, 2});
  CHECK_THROWS_AS(series.on_collect({}), std::invalid_argument);
}
