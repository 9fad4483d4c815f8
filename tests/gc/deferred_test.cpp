// SPDX-License-Identifier: Apache-2.0
// Releases that are put off: by the storage's wish, and where releasing must not happen. [gc.defer]
#include "domain_fixture.h"

#include <ebb/gc/defer.h>

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

namespace {

// Counts how often storages were released.
struct Releases {
  int count = 0;
  std::thread::id thread;

  void watch(Storage& storage) {
    storage.add_finalizer(
        [](void* context) noexcept {
          auto& self = *static_cast<Releases*>(context);
          ++self.count;
          self.thread = std::this_thread::get_id();
        },
        this);
  }
};

Storage deferred_storage(Releases& releases) {
  Storage storage = DomainFixture::make(64_KiB);
  releases.watch(storage);
  storage.defer_release();
  return storage;
}

}  // namespace

TEST_CASE("defer: the iteration runs its own deferred releases when it closes") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  Releases releases;
  OpenOwner it(series, 0, Place::here());
  deferred_storage(releases).reset();
  CHECK(releases.count == 0);
  CHECK(f.domain->memory().blocks_live == 1);
  CHECK(it.close().clean());
  CHECK(releases.count == 1);
  CHECK(f.domain->memory().blocks_live == 0);
  CHECK(f.clock.waits() == 0);
}

TEST_CASE("defer: a close that already waits runs what another thread defers") {
  DomainFixture f;  // the clock stands still: only the release can end the wait
  CloseSeries series(f.domain, {});
  Releases releases;
  OpenOwner it(series, 0, Place::here());
  Storage held = deferred_storage(releases);
  std::jthread dropper([&] {
    while (f.clock.waits() == 0) {
      std::this_thread::yield();
    }
    held.reset();
  });
  CHECK(it.close().clean());
  CHECK(releases.count == 1);
  CHECK(releases.thread == std::this_thread::get_id());
}

TEST_CASE("defer: what the runtime owns goes with the next close of any loop, or when asked for") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  Releases releases;
  {
    const OwnerScope scope(f.domain->long_lived());
    deferred_storage(releases).reset();
    deferred_storage(releases).reset();
    CHECK(releases.count == 0);
  }
  CHECK(f.domain->run_deferred());
  CHECK_FALSE(f.domain->run_deferred());
  CHECK(releases.count == 2);
  {
    const OwnerScope scope(f.domain->long_lived());
    deferred_storage(releases).reset();
  }
  OpenOwner it(series, 0, Place::here());
  CHECK(it.close().clean());
  CHECK(releases.count == 3);
}

TEST_CASE("defer: a close leaves the deferred releases of another open iteration to that") {
  DomainFixture f;
  CloseSeries outer_series(f.domain, {});
  CloseSeries inner_series(f.domain, {});
  Releases releases;
  OpenOwner outer(outer_series, 0, Place::here());
  Storage mine = deferred_storage(releases);
  OpenOwner inner(inner_series, 0, Place::here());
  mine.reset();
  CHECK(inner.close().clean());
  CHECK(releases.count == 0);
  CHECK(outer.close().clean());
  CHECK(releases.count == 1);
}

TEST_CASE("defer: within a DeferReleases nothing is released on the thread, outside of it again") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  Releases releases;
  OpenOwner it(series, 0, Place::here());
  Storage a = DomainFixture::make();
  Storage b = DomainFixture::make();
  releases.watch(a);
  releases.watch(b);
  {
    const DeferReleases defer;
    {
      const DeferReleases nested;
      a.reset();
    }
    CHECK(releases.count == 0);
  }
  b.reset();
  CHECK(releases.count == 1);
  CHECK(it.close().clean());
  CHECK(releases.count == 2);
}

TEST_CASE("defer: memory that waits for its release is there for who needs it") {
  DomainFixture f(nullptr, 1_MiB);
  CloseSeries series(f.domain, {});
  OpenOwner it(series, 0, Place::here());
  for (int i = 0; i < 20; ++i) {
    Storage big = DomainFixture::make(700_KiB);
    big.defer_release();
  }
  CHECK(it.close().clean());
}

TEST_CASE("defer: when the runtime ends all is released, and nothing is deferred any more") {
  DomainFixture f;
  Releases releases;
  Storage later;
  {
    const OwnerScope scope(f.domain->long_lived());
    deferred_storage(releases).reset();
    later = deferred_storage(releases);
  }
  f.domain->shutdown();
  CHECK(releases.count == 1);
  later.reset();
  CHECK(releases.count == 2);
}

TEST_CASE("defer: a million strings are destroyed at the close, not where they are dropped") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  OpenOwner it(series, 0, Place::here());
  Storage strings =
      Storage::make_elements(it.owner(), element_ops<std::string>, 1'000'000, {Place::here()});
  static_cast<std::string*>(strings.data())[5] = std::string(100, 'x');
  strings.defer_release();
  strings.reset();
  CHECK(f.domain->memory().live > 30_MiB);
  CHECK(it.close().clean());
  CHECK(f.domain->memory().live == 0_B);
}

TEST_CASE("defer: threads drop deferred storages while iterations close; each is released once") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = ~0ull});
  std::atomic<int> released{0};
  int made = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    OpenOwner it(series, i, Place::here());
    std::vector<Storage> batch;
    for (int n = 0; n < 4; ++n, ++made) {
      batch.push_back(DomainFixture::make());
      batch.back().defer_release();
      batch.back().add_finalizer(
          [](void* count) noexcept { ++*static_cast<std::atomic<int>*>(count); }, &released);
    }
    const std::jthread dropper([&batch] { batch.clear(); });
    it.close();
  }
  f.domain->run_deferred();
  CHECK(released == made);
  CHECK(f.domain->stats().storages_live == 0);
  CHECK(f.domain->stats().adopted_live == 0);
}

TEST_CASE(
    "defer: an iteration that closes within a DeferReleases, or outlives it, changes nothing") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  Releases releases;
  const OwnerScope scope(f.domain->long_lived());
  Storage during = DomainFixture::make();
  Storage after = DomainFixture::make();
  releases.watch(during);
  releases.watch(after);
  OpenOwner outer(series, 0, Place::here());
  {
    const DeferReleases defer;
    CHECK(outer.close().clean());
    during.reset();
    CHECK(releases.count == 0);
    OpenOwner inner(series, 1, Place::here());
    std::optional<DeferReleases> ends_first(std::in_place);
    OpenOwner innermost(series, 2, Place::here());
    ends_first.reset();
    CHECK(innermost.close().clean());
    CHECK(inner.close().clean());
    CHECK(releases.count == 0);
  }
  CHECK(f.domain->run_deferred());
  CHECK(releases.count == 1);
  after.reset();
  CHECK(releases.count == 2);
}

TEST_CASE("defer: a release that makes room for a storage may make one in another runtime") {
  DomainFixture f(nullptr, 1_MiB);
  DomainFixture other;
  CloseSeries series(f.domain, {});
  struct Log {
    Domain& domain;
    Storage note;
  } log{*other.domain, {}};
  OpenOwner it(series, 0, Place::here());
  Storage big = DomainFixture::make(700_KiB);
  big.add_finalizer(
      [](void* context) noexcept {
        auto& l = *static_cast<Log*>(context);
        l.note = Storage::make(l.domain.long_lived(), 64_B, default_align_cpu, {Place::here()});
      },
      &log);
  big.defer_release();
  big.reset();
  big = DomainFixture::make(700_KiB);
  CHECK(log.note.bytes() == 64_B);
  std::jthread([&] {  // a heap that was parked meanwhile would be this one's now
    const OwnerScope scope(f.domain->long_lived());
    const Storage theirs = DomainFixture::make();
  })
      .join();
  Storage small = DomainFixture::make();
  small.reset();
  big.reset();
  CHECK(it.close().clean());
}

TEST_CASE("defer: within a DeferReleases a request for memory releases nothing, nor does an open") {
  DomainFixture f(nullptr, 1_MiB);
  CloseSeries series(f.domain, {});
  Releases releases;
  const OwnerScope scope(f.domain->long_lived());
  Storage big = deferred_storage(releases);
  {
    const DeferReleases defer;
    big.reset();
    CHECK_THROWS_AS(DomainFixture::make(1000_KiB), OutOfMemory);
    OpenOwner it(series, 0, Place::here());
    CHECK(it.close().clean());
    CHECK(releases.count == 0);
  }
  const OpenOwner it(series, 1, Place::here());
  CHECK(releases.count == 1);
}
