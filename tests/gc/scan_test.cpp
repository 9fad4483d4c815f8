// SPDX-License-Identifier: Apache-2.0
// A close with stragglers looks at what its iteration can have made, not at everything that is
// alive, and misses none of its own. What it saves is in ./dev bench gc. [gc.close]
#include "domain_fixture.h"

#include <doctest/doctest.h>

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
};

}  // namespace

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
