// SPDX-License-Identifier: Apache-2.0
// A close with stragglers looks at what its iteration can have made, not at everything that is
// alive: long-lived storages do not slow it down, and none of its own is missed. [gc.close]
#include "domain_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

namespace {

struct ScanLoop {
  DomainFixture f;
  CloseSeries series{f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = ~0ull}};
  Storage straggler;
  std::uint64_t next = 0;

  void straggle() {
    OpenOwner it(series, next++, Place::here());
    straggler = DomainFixture::make();
    CHECK(it.close_briefly().stragglers == 1);
  }
  // The least time of a straggling iteration, of 200.
  double straggle_ns() {
    using Clock = std::chrono::steady_clock;
    double least = 1e18;
    for (int i = 0; i < 200; ++i) {
      const auto start = Clock::now();
      straggle();
      least =
          std::min(least, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
    }
    return least;
  }
};

}  // namespace

TEST_CASE("scan: a hundred thousand long-lived storages do not make a straggling close slow") {
  ScanLoop loop;
  const double alone = loop.straggle_ns();
  std::vector<Storage> replay_buffer;
  {
    const OwnerScope scope(loop.f.domain->long_lived());
    for (int i = 0; i < 100'000; ++i) {
      replay_buffer.push_back(DomainFixture::make());
    }
  }
  loop.straggle();  // the first one after it walks over all of them
  // A walk over all of them takes a hundred times as long; the bound leaves room for a busy
  // machine.
  CHECK(loop.straggle_ns() < 20 * alone);
}

TEST_CASE("scan: stragglers in cells of any age, thread and origin are found") {
  ScanLoop loop;
  std::vector<Storage> old;
  {
    const OwnerScope scope(loop.f.domain->long_lived());
    for (int i = 0; i < 1000; ++i) {
      old.push_back(DomainFixture::make());
    }
  }
  for (int i = 0; i < 5; ++i) {
    loop.straggle();  // so that the old cells are of an earlier epoch
  }
  OpenOwner it(loop.series, loop.next++, Place::here());
  old[500].reset();
  const Storage reused = DomainFixture::make();  // in a cell between old ones
  Storage immigrant = old[100];
  immigrant.transfer(it.owner());
  Storage foreign;
  std::jthread([&, owner = it.owner()] {
    const OwnerScope scope(owner);
    foreign = DomainFixture::make();
  }).join();
  CHECK(it.close_briefly().stragglers == 3);
  CHECK(immigrant.owner_kind() == OwnerKind::runtime);
  CHECK(foreign.owner_kind() == OwnerKind::runtime);
  CHECK(reused.owner_kind() == OwnerKind::runtime);
}

TEST_CASE("scan: an outer iteration finds what it made before inner ones scanned") {
  ScanLoop loop;
  CloseSeries outer_series(loop.f.domain,
                           {.deadline = std::chrono::milliseconds(0), .warmup = ~0ull});
  OpenOwner outer(outer_series, 0, Place::here());
  const Storage early = DomainFixture::make();
  for (int i = 0; i < 10; ++i) {
    loop.straggle();
  }
  CHECK(outer.close_briefly().stragglers == 1);
  CHECK(early.owner_kind() == OwnerKind::runtime);
}
