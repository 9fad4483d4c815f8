// SPDX-License-Identifier: Apache-2.0
// Races around the deadline: releases, adoptions and transfers at the same moment. Run under
// ThreadSanitizer too. [gc.count]
#include "domain_fixture.h"
#include "racing.h"

#include <ebb/gc/error.h>

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;
using ebb::test::race;

namespace {

// Takes longer in some rounds than in others, so that either thread comes first.
void spin(int rounds) {
  for (std::atomic<int> n{0}; n < rounds * 100; ++n) {
  }
}

// A loop whose iterations close at once, whatever is alive.
struct ImpatientLoop {
  explicit ImpatientLoop(Policy policy = Policy::adopt)
      : series(f.domain,
               {.deadline = std::chrono::milliseconds(0), .policy = policy, .warmup = ~0ull}) {}

  DomainFixture f;
  CloseSeries series;
  std::optional<OpenOwner> it;

  void open(int i) { it.emplace(series, static_cast<std::uint64_t>(i), Place::here()); }
  // The same, and returns a storage of some pages that begins with i + 1.
  Storage open_with_number(int i) {
    open(i);
    Storage made = DomainFixture::make(16_KiB);
    *static_cast<int*>(made.data()) = i + 1;
    return made;
  }
  void check_nothing_is_left() {
    it.reset();
    CHECK(f.domain->stats().storages_live == 0);
    CHECK(f.domain->stats().adopted_live == 0);
    CHECK(f.domain->stats().adopted_bytes == 0_B);
    OpenOwner fresh(series, 0, Place::here());  // no record has kept a count
    CHECK(fresh.close().clean());
  }
};

}  // namespace

TEST_CASE("race: a straggler dropped at the very moment of the deadline is counted once") {
  ImpatientLoop loop;
  Storage shared;
  race(
      [&](int i) {
        loop.open(i);
        shared = DomainFixture::make();
      },
      [&](int) { loop.it->close(); }, [&](int) { shared.reset(); }, [](int) {});
  loop.check_nothing_is_left();
}

TEST_CASE("race: a keep racing with a close moves the storage once") {
  ImpatientLoop loop;
  Storage shared;
  race(
      [&](int i) {
        loop.open(i);
        shared = DomainFixture::make();
      },
      [&](int) { loop.it->close(); }, [&](int) { shared.transfer(loop.f.domain->long_lived()); },
      [&](int) {
        CHECK(shared.owner_kind() == OwnerKind::runtime);
        shared.reset();
      });
  loop.check_nothing_is_left();
}

TEST_CASE("race: a storage made with a copied owner while its iteration closes is never lost") {
  ImpatientLoop loop;
  Owner owner;
  Storage made;
  race(
      [&](int i) {
        loop.open(i);
        owner = loop.it->owner();
      },
      [&](int) { loop.it->close(); },
      [&](int) { made = Storage::make(owner, 64_B, default_align_cpu, {Place::here()}); },
      [&](int) {
        CHECK(made.owner_kind() == OwnerKind::runtime);
        made.reset();
      });
  loop.check_nothing_is_left();
}

TEST_CASE("race: a straggler that is revoked while another thread drops it is released once") {
  ImpatientLoop loop(Policy::revoke);
  Storage shared;
  race(
      [&](int i) {
        loop.open(i);
        shared = DomainFixture::make(16_KiB);
      },
      [&](int) { loop.it->close_briefly(); }, [&](int) { shared.reset(); }, [](int) {});
  loop.check_nothing_is_left();
}

TEST_CASE("race: a keep racing with a revoking close moves the storage, with or without memory") {
  ImpatientLoop loop(Policy::revoke);
  Storage shared;
  int revoked = 0;
  race([&](int i) { shared = loop.open_with_number(i); }, [&](int) { loop.it->close_briefly(); },
       [&](int i) {
         spin(i % 200);  // so that either comes first
         shared.transfer(loop.f.domain->long_lived());
       },
       [&](int i) {
         CHECK(shared.owner_kind() == OwnerKind::runtime);
         CHECK(*static_cast<int*>(shared.data()) == (shared.revoked() ? 0 : i + 1));
         revoked += shared.revoked() ? 1 : 0;
         shared.reset();
       });
  MESSAGE("revoked in ", revoked, " rounds");
  loop.check_nothing_is_left();
}

TEST_CASE("race: a storage that somebody begins to hold while it is revoked is one or the other") {
  ImpatientLoop loop(Policy::revoke);
  Storage shared;
  bool held = false;
  race([&](int i) { shared = loop.open_with_number(i); }, [&](int) { loop.it->close_briefly(); },
       [&](int i) {
         spin(i % 200);
         try {
           const StorageHolder holder(shared, "a test", "race");
           held = *static_cast<int*>(holder.storage().data()) == i + 1;
         } catch (const RevokedError&) {
           held = true;
         }
       },
       [&](int) {
         REQUIRE(held);
         shared.reset();
       });
  loop.check_nothing_is_left();
}

namespace {

// Holds back whoever reserves while the gate is closed.
class GateSource final : public ebb::Source {
 public:
  ebb::Range reserve(Bytes bytes) noexcept override {
    waiting = true;
    closed.wait(true);
    waiting = false;
    return ebb::system_source().reserve(bytes);
  }
  void release(ebb::Range range) noexcept override { ebb::system_source().release(range); }
  bool commit(ebb::Range range) noexcept override { return ebb::system_source().commit(range); }
  void decommit(ebb::Range range) noexcept override { ebb::system_source().decommit(range); }
  Bytes page_size() const noexcept override { return ebb::system_source().page_size(); }
  ebb::Device device() const noexcept override { return ebb::cpu; }
  const char* name() const noexcept override { return "gate"; }

  std::atomic<bool> closed{false};
  std::atomic<bool> waiting{false};
};

}  // namespace

TEST_CASE(
    "race: a storage that takes longer to make than its iteration to close is the runtime's") {
  GateSource source;
  {
    ebb::test::DomainFixture f(&source);
    ebb::CloseSeries series(f.domain, {.deadline = ebb::Milliseconds(0)});
    Storage made;
    {
      ebb::OpenOwner iteration(series, 0, Place::here());
      const Storage mine = ebb::test::DomainFixture::make();  // this thread has its heap
      const Owner owner = iteration.owner();
      source.closed = true;
      std::jthread maker(
          [&] { made = Storage::make(owner, 64_B, default_align_cpu, {Place::here()}); });
      while (!source.waiting) {  // the maker is charged, and needs a heap
        std::this_thread::yield();
      }
      iteration.close();
      source.closed = false;
      source.closed.notify_all();
    }
    CHECK(made.owner_kind() == OwnerKind::runtime);
    CHECK(f.domain->stats().storages_late == 1);
    made.reset();
    CHECK(f.domain->stats().storages_live == 0);
  }
}

TEST_CASE("race: weak references lock or do not, while the last strong one goes") {
  DomainFixture f;
  Storage strong;
  Storage locked;
  WeakStorage weak;
  race(
      [&](int i) {
        const OwnerScope scope(f.domain->long_lived());
        strong = DomainFixture::make();
        *static_cast<int*>(strong.data()) = i;
        weak = WeakStorage(strong);
      },
      [&](int) { strong.reset(); }, [&](int) { locked = weak.lock(); },
      [&](int i) {
        if (locked) {
          CHECK(*static_cast<int*>(locked.data()) == i);
        }
        locked.reset();
        CHECK_FALSE(weak.lock());
      });
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("race: a late task resizes a straggler while its iteration closes; the bytes add up") {
  ImpatientLoop loop;
  Storage straggler;
  race(
      [&](int i) {
        loop.open(i);
        straggler = DomainFixture::make(100_B);
      },
      [&](int) { loop.it.reset(); },
      [&](int i) { straggler.resize(Bytes{static_cast<std::size_t>(1 + i % 500)}); },
      [&](int i) {
        CHECK(straggler.bytes() == Bytes{static_cast<std::size_t>(1 + i % 500)});
        CHECK(loop.f.domain->stats().adopted_bytes == straggler.bytes());
        straggler.reset();
        loop.check_nothing_is_left();
      });
}
