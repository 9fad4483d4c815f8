// SPDX-License-Identifier: Apache-2.0
// Owners of threads that have none: entered, left, ended and nested in any order. [gc.owner]
#include "domain_fixture.h"
#include "racing.h"

#include <ebb/gc/fallback_owner.h>

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

namespace {

// Three loops with an open iteration each, opened on a thread of their own, which keeps them.
struct OpenLoops {
  DomainFixture f;
  CloseSeries series{f.domain, {}};
  OpenOwner a{series, 0, Place::here()};
  OpenOwner b{series, 1, Place::here()};
  OpenOwner c{series, 2, Place::here()};
};

template <class Body>
void on_a_fresh_thread(Body body) {
  std::jthread([&] { body(); }).join();
}

}  // namespace

TEST_CASE("fallback owner: a thread charges to it from entering until leaving") {
  OpenLoops loops;
  FallbackOwner fallback(loops.a.owner(), "test");
  on_a_fresh_thread([&] {
    CHECK_THROWS_AS(DomainFixture::make(), std::invalid_argument);
    fallback.enter();
    CHECK(Owner::current("test") == loops.a.owner());
    CHECK(DomainFixture::make().owner_record() == loops.a.owner().record());
    fallback.leave();
    fallback.leave();  // one too many does nothing
    CHECK_FALSE(Owner::current_or_none());
  });
  CHECK(loops.f.domain->stats().storages_unowned == 0);
}

TEST_CASE("fallback owner: its end ends it on every thread, whether they leave or not") {
  OpenLoops loops;
  on_a_fresh_thread([&] {
    for (int i = 0; i < 100; ++i) {
      FallbackOwner fallback(loops.a.owner(), "test");
      fallback.enter();
      CHECK(Owner::current_or_none() == loops.a.owner());
      fallback.end();
      CHECK_FALSE(Owner::current_or_none());
    }
    FallbackOwner later(loops.b.owner(), "test");
    later.enter();
    CHECK(Owner::current_or_none() == loops.b.owner());
  });  // ends without leaving
}

TEST_CASE("fallback owner: the one entered last counts, in whatever order they are left") {
  OpenLoops loops;
  FallbackOwner a(loops.a.owner(), "test");
  FallbackOwner b(loops.b.owner(), "test");
  on_a_fresh_thread([&] {
    a.enter();
    b.enter();
    CHECK(Owner::current_or_none() == loops.b.owner());
    a.leave();  // as TBB does: first in, first out
    CHECK(Owner::current_or_none() == loops.b.owner());
    b.leave();
    CHECK_FALSE(Owner::current_or_none());

    a.enter();
    b.enter();
    a.enter();  // nested: in an arena, in another, in the first one again
    CHECK(Owner::current_or_none() == loops.a.owner());
    a.leave();
    CHECK(Owner::current_or_none() == loops.b.owner());
    b.end();
    CHECK(Owner::current_or_none() == loops.a.owner());
    a.leave();
    CHECK_FALSE(Owner::current_or_none());
  });
}

TEST_CASE("fallback owner: scopes come first, and their way back does not disturb it") {
  OpenLoops loops;
  FallbackOwner fallback(loops.a.owner(), "test");
  on_a_fresh_thread([&] {
    std::optional<OwnerScope> scope(loops.b.owner());
    fallback.enter();  // amid a task that waits
    CHECK(Owner::current_or_none() == loops.b.owner());
    scope.reset();
    CHECK(Owner::current_or_none() == loops.a.owner());
    scope.emplace(loops.b.owner());
    fallback.leave();
    CHECK(Owner::current_or_none() == loops.b.owner());
    scope.reset();
    CHECK_FALSE(Owner::current_or_none());
  });
}

TEST_CASE("fallback owner: it encloses an iteration that is opened under it") {
  OpenLoops loops;
  FallbackOwner fallback(loops.a.owner(), "test");
  on_a_fresh_thread([&] {
    fallback.enter();
    OpenOwner inner(loops.series, 3, Place::here());
    CHECK(inner.parent() == loops.a.owner());
    inner.close();
    CHECK(Owner::current_or_none() == loops.a.owner());
  });
}

TEST_CASE("fallback owner: what is made after its iteration has closed is late") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  std::optional<OpenOwner> it(std::in_place, series, 0u, Place::here());
  FallbackOwner fallback(it->owner(), "test");
  it.reset();
  on_a_fresh_thread([&] {
    fallback.enter();
    CHECK(DomainFixture::make().owner_kind() == OwnerKind::runtime);
  });
  CHECK(f.domain->stats().storages_late == 1);
  CHECK(f.domain->stats().storages_unowned == 0);
}

TEST_CASE("fallback owner: a thread keeps no heap for it") {
  OpenLoops loops;
  FallbackOwner fallback(loops.a.owner(), "test");
  Storage made;
  on_a_fresh_thread([&] {
    fallback.enter();
    made = DomainFixture::make();
    // A heap that the idle thread kept would leave the next thread none but a new one.
    on_a_fresh_thread([&] {
      const OwnerScope scope(loops.a.owner());
      CHECK(DomainFixture::make().data() != nullptr);
    });
  });
  CHECK(loops.f.domain->memory().heaps == 1);
}

TEST_CASE("fallback owner: its end races with threads that enter and charge") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = forever});
  std::optional<OpenOwner> it;
  std::optional<FallbackOwner> fallback;
  int charged = 0;
  ebb::test::race(
      [&](int i) {
        it.emplace(series, static_cast<std::uint64_t>(i), Place::here());
        fallback.emplace(it->owner(), "test");
      },
      [&](int i) {
        for (int k = i % 8; k > 0; --k) {
          std::this_thread::yield();  // else this thread, which has less to do, is always first
        }
        fallback->end();
      },
      [&](int) {
        fallback->enter();
        if (const Owner owner = Owner::current_or_none()) {
          CHECK(owner == it->owner());
          const Storage made = Storage::make(owner, 64_B, default_align_cpu, {Place::here()});
          CHECK(made.owner_record() == owner.record());
          ++charged;
        }
      },
      [&](int) { CHECK(it->close().clean()); });
  fallback.reset();
  it.reset();
  CHECK(f.domain->stats().storages_late == 0);
  MESSAGE("charged before the end in ", charged, " of ", ebb::test::rounds(), " rounds");
}

TEST_CASE("fallback owner: an empty owner is refused in the caller's name") {
  CHECK_THROWS_WITH_AS(FallbackOwner(Owner{}, "ArenaOwner"), "[ArenaOwner] the owner is empty",
                       std::invalid_argument);
}

TEST_CASE("iteration: the stream of the owner that encloses it goes on") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  const Stream second{cpu, 2};
  const OwnerScope scope(f.domain->long_lived().on(second));
  OpenOwner it(series, 0, Place::here());
  CHECK(it.owner().stream() == second);
  CHECK(Owner::current("test") == it.owner());
}

TEST_CASE("fallback owner: one that outlives its runtime refuses, and names nothing that is gone") {
  std::shared_ptr<Domain> domain = Domain::make({.log = [](LogLevel, std::string_view) {}});
  const std::weak_ptr<Domain> watch = domain;
  {
    FallbackOwner fallback(domain->long_lived(), "test");
    fallback.enter();
    domain->shutdown();
    domain.reset();
    REQUIRE_FALSE(watch.expired());  // else the next line reads freed memory
    CHECK_FALSE(Owner::current_or_none().is_open());
    CHECK_THROWS_AS(DomainFixture::make(), std::invalid_argument);
    fallback.leave();
  }
  CHECK(watch.expired());
}
