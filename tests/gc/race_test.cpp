// SPDX-License-Identifier: Apache-2.0
// Races around the deadline: releases, adoptions and transfers at the same moment. Run under
// ThreadSanitizer too. [gc.count]
#include "domain_fixture.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

namespace {

int rounds() {
  const char* const text = std::getenv("EBB_STRESS");
  return text != nullptr ? std::atoi(text) : 2000;
}

// Two threads that meet before each round.
class Meeting {
 public:
  void meet() {
    const int target = (arrived_.fetch_add(1) / 2 + 1) * 2;
    while (arrived_.load() < target) {
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<int> arrived_{0};
};

}  // namespace

TEST_CASE("race: a straggler dropped at the very moment of the deadline is counted once") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = ~0ull});
  Storage shared;
  Meeting start;
  Meeting end;
  const int count = rounds();
  std::jthread dropper([&] {
    for (int i = 0; i < count; ++i) {
      start.meet();
      shared.reset();
      end.meet();
    }
  });
  for (int i = 0; i < count; ++i) {
    OpenOwner it(series, static_cast<std::uint64_t>(i), Place::here());
    shared = DomainFixture::make();
    start.meet();
    it.close();
    end.meet();
  }
  dropper.join();
  CHECK(f.domain->stats().storages_live == 0);
  CHECK(f.domain->stats().adopted_live == 0);
  CHECK(f.domain->stats().adopted_bytes == 0_B);
  // Nothing is left behind in any record: a fresh iteration closes clean.
  OpenOwner it(series, 0, Place::here());
  CHECK(it.close().clean());
}

TEST_CASE("race: a keep racing with a close moves the storage once") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = ~0ull});
  Storage shared;
  Meeting start;
  Meeting end;
  const int count = rounds();
  std::jthread keeper([&] {
    for (int i = 0; i < count; ++i) {
      start.meet();
      shared.transfer(f.domain->long_lived());
      end.meet();
    }
  });
  for (int i = 0; i < count; ++i) {
    OpenOwner it(series, static_cast<std::uint64_t>(i), Place::here());
    shared = DomainFixture::make();
    start.meet();
    it.close();
    end.meet();
    CHECK(shared.owner_kind() == OwnerKind::runtime);
    shared.reset();
  }
  keeper.join();
  CHECK(f.domain->stats().storages_live == 0);
  CHECK(f.domain->stats().adopted_live == 0);
}

TEST_CASE("race: a storage made with a copied owner while its iteration closes is never lost") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = ~0ull});
  Owner owner;
  Meeting start;
  Meeting end;
  const int count = rounds();
  std::jthread maker([&] {
    for (int i = 0; i < count; ++i) {
      start.meet();
      Storage made = Storage::make(owner, 64_B, default_align_cpu, {Place::here()});
      end.meet();
      CHECK(made.owner_kind() == OwnerKind::runtime);
    }
  });
  for (int i = 0; i < count; ++i) {
    OpenOwner it(series, static_cast<std::uint64_t>(i), Place::here());
    owner = it.owner();
    start.meet();
    it.close();
    end.meet();
  }
  maker.join();
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("race: weak references lock or do not, while the last strong one goes") {
  DomainFixture f;
  const int count = rounds();
  Storage strong;
  WeakStorage weak;
  Meeting start;
  Meeting end;
  int locked = 0;
  std::jthread locker([&] {
    for (int i = 0; i < count; ++i) {
      start.meet();
      if (const Storage got = weak.lock()) {
        CHECK(*static_cast<int*>(got.data()) == i);
        ++locked;
      }
      end.meet();
    }
  });
  for (int i = 0; i < count; ++i) {
    const OwnerScope scope(f.domain->long_lived());
    strong = DomainFixture::make();
    *static_cast<int*>(strong.data()) = i;
    weak = WeakStorage(strong);
    start.meet();
    strong.reset();
    end.meet();
  }
  locker.join();
  CHECK(locked <= count);
  CHECK(f.domain->memory().blocks_live + f.domain->stats().storages_live <= 1);
}
