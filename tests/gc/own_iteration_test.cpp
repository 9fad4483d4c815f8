// SPDX-License-Identifier: Apache-2.0
// The short way by which a thread makes and drops the storages of its own iteration: that it is
// taken for no other, and that a struct which is used again shows nothing of what it was.
// [gc.count] [gc.owner]
#include "domain_fixture.h"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

namespace {

CloseOptions impatient() {
  return {.deadline = std::chrono::milliseconds(0), .warmup = 0};
}

Storage make_for(const Owner& owner) {
  return Storage::make(owner, 64_B, default_align_cpu, {Place::here()});
}

}  // namespace

TEST_CASE(
    "own iteration: one that has ended, in whatever order, is not the thread's own any more") {
  for (const bool asks : {false, true}) {
    DomainFixture f;
    CloseSeries series(f.domain, {});
    std::optional<OpenOwner> outer(std::in_place, series, 0, Place::here());
    DomainFixture::make();  // takes the heap
    std::optional<OpenOwner> inner(std::in_place, series, 1, Place::here());
    const Owner left = outer->owner();
    Storage held = make_for(left);
    outer.reset();  // out of order: what inner has saved names it still
    CHECK(held.owner_kind() == OwnerKind::runtime);
    CHECK(make_for(left).owner_kind() == OwnerKind::runtime);
    inner.reset();
    if (asks) {
      CHECK_FALSE(Owner::current_or_none());
    }
    CHECK(make_for(left).owner_kind() == OwnerKind::runtime);
    held.reset();
    OpenOwner next(series, 2, Place::here());
    CHECK(make_for(next.owner()).owner_kind() == OwnerKind::iteration);
    CHECK(next.close().clean());
    CHECK(f.domain->memory().blocks_live == 0);
    CHECK(f.domain->stats().storages_live == 0);
  }
}

TEST_CASE("own iteration: a struct that is used again shows nothing of the storage before") {
  DomainFixture f;
  CloseSeries series(f.domain, impatient());
  int finalized = 0;
  const auto count = [](void* context) noexcept { ++*static_cast<int*>(context); };
  const void* before = nullptr;
  {
    OpenOwner it(series, 0, Place::here());
    Storage dressed = DomainFixture::make();
    before = dressed.data();
    dressed.set_name("velvet");
    dressed.add_finalizer(count, &finalized);
    dressed.resize(32_B);
    CHECK(dressed.replaced());
    CHECK(it.close().report->text().find("velvet") != std::string::npos);
    CHECK(f.domain->stats().adopted_live == 1);
  }
  CHECK(finalized == 1);
  CHECK(f.domain->stats().adopted_live == 0);
  for (std::uint64_t i = 1; i < 4; ++i) {
    OpenOwner it(series, i, Place::here());
    Storage plain = DomainFixture::make();
    CHECK(plain.data() == before);
    CHECK_FALSE(plain.suspect());
    plain.reset();
    plain = DomainFixture::make();
    const CloseResult closed = it.close();
    CHECK(closed.stragglers == 1);
    CHECK(closed.report->text().find("velvet") == std::string::npos);
    CHECK(f.domain->stats().adopted_live == 1);
    plain.reset();
    CHECK(f.domain->stats().adopted_live == 0);
  }
  CHECK(finalized == 1);
}

TEST_CASE("own iteration: what a refusal leaves is what was there before") {
  DomainFixture f(nullptr, Bytes{std::size_t{4} << 20});
  CloseSeries series(f.domain, impatient());
  OpenOwner it(series, 0, Place::here());
  const Storage small = DomainFixture::make();
  CHECK_THROWS_AS(DomainFixture::make(Bytes{std::size_t{8} << 20}), OutOfMemory);
  CHECK(f.domain->memory().blocks_live == 1);
  CHECK(it.owner().record() == small.owner_record());
}

TEST_CASE("own iteration: a refused request is made again once deferred releases have made room") {
  DomainFixture f(nullptr, Bytes{std::size_t{4} << 20});
  CloseSeries series(f.domain, impatient());
  OpenOwner it(series, 0, Place::here());
  DomainFixture::make();
  Storage large = DomainFixture::make(Bytes{std::size_t{3} << 20});
  large.defer_release();
  large.reset();
  const Storage next = DomainFixture::make(Bytes{std::size_t{3} << 20});
  CHECK(next.data() != nullptr);
  CHECK(f.domain->memory().blocks_live == 1);
}
