// SPDX-License-Identifier: Apache-2.0
// Storages: counts, weak references, finalizers, charges. [gc.storage] [gc.count]
#include "domain_fixture.h"

#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

TEST_CASE("storage: bytes are there, aligned and writable, until the last reference") {
  DomainFixture f;
  const OwnerScope scope(f.domain->long_lived());
  Storage a = DomainFixture::make(1000_B);
  CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
  std::memset(a.data(), 7, 1000);
  Storage b = a;
  a.reset();
  CHECK(static_cast<unsigned char*>(b.data())[999] == 7);
  CHECK(b.use_count() == 1);
  CHECK(f.domain->memory().blocks_live == 1);
  b.reset();
  CHECK(f.domain->memory().blocks_live == 0);
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("storage: a weak reference locks while a strong one lives, and never brings it back") {
  DomainFixture f;
  const OwnerScope scope(f.domain->long_lived());
  Storage a = DomainFixture::make();
  const WeakStorage weak(a);
  {
    const Storage locked = weak.lock();
    CHECK(locked.is_same(a));
    CHECK(a.use_count() == 2);
  }
  a.reset();
  CHECK_FALSE(weak.lock());
  CHECK(f.domain->memory().blocks_live == 0);  // the bytes went, the struct stays for weak
}

TEST_CASE("storage: finalizers run once each, in order, after the bytes are released") {
  DomainFixture f;
  const OwnerScope scope(f.domain->long_lived());
  struct Context {
    std::vector<int>* order;
    int number;
    DomainFixture* fixture;
  };
  std::vector<int> order;
  Context one{&order, 1, &f};
  Context two{&order, 2, &f};
  const auto note = [](void* opaque) noexcept {
    const auto* context = static_cast<Context*>(opaque);
    context->order->push_back(context->number);
    CHECK(context->fixture->domain->memory().blocks_live == 0);
    CHECK(context->fixture->domain->stats().storages_live == 1);  // not yet uncounted
  };
  Storage a = DomainFixture::make();
  a.add_finalizer(note, &one);
  a.add_finalizer(note, &two);
  a.add_finalizer(note, &one);  // the same registration is one
  Storage b = a;
  a.reset();
  CHECK(order.empty());
  b.reset();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("storage: foreign memory is charged, and released with the last reference") {
  DomainFixture f;
  const OwnerScope scope(f.domain->long_lived());
  static int released = 0;
  released = 0;
  static constexpr PtrOps ops{[](void*, void*) noexcept { ++released; }, "counted"};
  int value = 5;
  Storage a = Storage::wrap(Owner::current("test"), DataPtr(&value, nullptr, ops, cpu),
                            Bytes{sizeof value}, {Place::here()});
  CHECK(a.data() == &value);
  CHECK(f.domain->stats().storages_live == 1);
  a.reset();
  CHECK(released == 1);
}

TEST_CASE("storage: a transfer moves the charge and nothing else") {
  DomainFixture f;
  CloseSeries series(f.domain, {.name = "t"});
  Storage kept;
  {
    OpenOwner it(series, 0, Place::here());
    kept = DomainFixture::make();
    CHECK(kept.owner_kind() == OwnerKind::iteration);
    kept.transfer(it.parent());
    CHECK(kept.owner_kind() == OwnerKind::runtime);
    CHECK(it.close().clean());
  }
  CHECK(f.domain->stats().storages_live == 1);
  CHECK(f.domain->stats().adopted_live == 0);
}

TEST_CASE("storage: a thread without an owner is told the remedy") {
  std::jthread([] {
    try {
      (void)Owner::current("zeros");
      FAIL("no owner, no error");
    } catch (const std::invalid_argument& e) {
      CHECK(std::string(e.what()).find("[zeros]") == 0);
      CHECK(std::string(e.what()).find("ebb::bind") != std::string::npos);
    }
  });
}

TEST_CASE("storage: one that outlives its domain's shutdown is valid and frees everything") {
  Storage survivor;
  std::weak_ptr<Domain> domain;
  {
    DomainFixture f;
    domain = f.domain;
    const OwnerScope scope(f.domain->long_lived());
    survivor = DomainFixture::make(100000_B);
    std::memset(survivor.data(), 1, 100000);
  }
  CHECK_FALSE(domain.expired());
  std::memset(survivor.data(), 2, 100000);
  std::jthread([&] { survivor.reset(); });
  CHECK(domain.expired());
}

TEST_CASE("storage: made after the runtime has ended it is refused") {
  Owner owner;
  std::shared_ptr<Domain> domain;
  {
    DomainFixture f;
    domain = f.domain;
    owner = f.domain->long_lived();
  }
  CHECK_THROWS_AS(Storage::make(owner, 64_B, default_align_cpu, {}), std::invalid_argument);
}

TEST_CASE("storage: assignment releases what was there at once, and survives itself") {
  DomainFixture f;
  const OwnerScope scope(f.domain->long_lived());
  Storage a = DomainFixture::make();
  Storage b = DomainFixture::make();
  a = std::move(b);
  CHECK(f.domain->memory().blocks_live == 1);
  Storage& same = a;
  a = same;
  CHECK(a.use_count() == 1);
  a = std::move(same);
  CHECK(a.use_count() == 1);
  WeakStorage weak(a);
  weak = WeakStorage(a);
  CHECK(weak.lock().is_same(a));
}
