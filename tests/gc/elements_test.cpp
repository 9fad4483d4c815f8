// SPDX-License-Identifier: Apache-2.0
// Storages of constructed elements: made, destroyed, and what is left when making fails.
// [gc.storage] [alloc.resource]
#include "domain_fixture.h"
#include "elements_fixture.h"
#include "support/failing_source.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;
using ebb::test::Tracked;
using ebb::test::tracked_ops;

namespace {

Storage make(Owner owner, std::size_t count) {
  return Storage::make_elements(owner, tracked_ops, count, {Place::here()});
}

struct alignas(128) Wide {
  int value = 7;
};

}  // namespace

TEST_CASE("elements: they are constructed with the storage and destroyed with its last reference") {
  DomainFixture f;
  Storage a = make(f.domain->long_lived(), 5);
  CHECK(Tracked::live == 5);
  CHECK(a.bytes() == Bytes::of<Tracked>(5));
  CHECK(a.has_elements());
  CHECK(a.element_ops() == &tracked_ops);
  CHECK(static_cast<Tracked*>(a.data())[4].value == 1);
  CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
  const WeakStorage weak(a);
  a.add_finalizer([](void*) noexcept { CHECK(Tracked::live == 0); }, nullptr);
  Storage b = a;
  a.reset();
  CHECK(Tracked::live == 5);
  b.reset();
  CHECK(Tracked::live == 0);
  CHECK_FALSE(weak.lock());
  CHECK(f.domain->memory().blocks_live == 0);
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("elements: a constructor that throws at any index leaves nothing behind") {
  DomainFixture f;
  for (long n = 1; n <= 8; ++n) {
    Tracked::throw_in = n;
    CHECK_THROWS_AS(make(f.domain->long_lived(), 8), std::runtime_error);
    CHECK(Tracked::throw_in == 0);
    CHECK(Tracked::live == 0);
    CHECK(f.domain->memory().blocks_live == 0);
    CHECK(f.domain->stats().storages_live == 0);
  }
  CHECK(make(f.domain->long_lived(), 8).bytes() == Bytes::of<Tracked>(8));
}

TEST_CASE("elements: each refused page leaves nothing behind, and asking again works") {
  bool failed = true;
  for (std::uint64_t n = 1; failed; ++n) {
    test::FailingSource source(system_source());
    DomainFixture f(&source);
    source.fail_at(n);
    failed = false;
    try {
      make(f.domain->long_lived(), 100000);
    } catch (const OutOfMemory&) {
      failed = true;
      CHECK(Tracked::live == 0);
      CHECK(make(f.domain->long_lived(), 100000).has_elements());
    }
    CHECK(Tracked::live == 0);
    CHECK(f.domain->memory().blocks_live == 0);
    REQUIRE(n < 100);
  }
}

TEST_CASE("elements: none at all, and over-aligned ones") {
  DomainFixture f;
  const Storage none = make(f.domain->long_lived(), 0);
  CHECK(none.bytes() == 0_B);
  CHECK(none.data() != nullptr);
  const Storage wide =
      Storage::make_elements(f.domain->long_lived(), element_ops<Wide>, 3, {Place::here()});
  CHECK(reinterpret_cast<std::uintptr_t>(wide.data()) % 128 == 0);
  CHECK(static_cast<Wide*>(wide.data())[2].value == 7);
}

TEST_CASE("elements: a count whose bytes overflow, no owner, and a device are refused") {
  DomainFixture f;
  const Owner owner = f.domain->long_lived();
  CHECK_THROWS_AS(make(owner, std::numeric_limits<std::size_t>::max() / 2), std::invalid_argument);
  CHECK_THROWS_AS(make(owner, std::numeric_limits<std::size_t>::max() / sizeof(Tracked)),
                  std::invalid_argument);
  CHECK_THROWS_WITH(make(Owner{}, 1), "[Storage::make_elements] the owner is empty");
  const Owner device(*owner.record(), owner.generation(), Stream{{DeviceKind::sim, 0}, 0});
  CHECK_THROWS_WITH(make(device, 1),
                    "[Storage::make_elements] elements live in host memory, not on sim:0");
  CHECK(f.domain->memory().blocks_live == 0);
}

TEST_CASE("elements: the last reference may go on another thread, and after the domain's end") {
  Storage survivor;
  {
    DomainFixture f;
    survivor = Storage::make_elements(f.domain->long_lived(), element_ops<std::string>, 100,
                                      {Place::here()});
    for (int i = 0; i < 100; ++i) {
      static_cast<std::string*>(survivor.data())[i] = std::string(100, 'x');
    }
  }
  std::jthread([&] { survivor.reset(); }).join();
  CHECK_FALSE(survivor);
}

TEST_CASE("elements: wrapped ones are destroyed by the release that they came with") {
  DomainFixture f;
  static constexpr PtrOps ops{
      [](void* context, void*) noexcept { delete[] static_cast<Tracked*>(context); }, "new[]"};
  auto* const foreign = new Tracked[4];
  Storage a = Storage::wrap_elements(f.domain->long_lived(), DataPtr(foreign, foreign, ops, cpu),
                                     tracked_ops, 4, {Place::here()});
  CHECK(a.data() == foreign);
  CHECK(a.element_ops() == &tracked_ops);
  CHECK(Tracked::live == 4);
  a.reset();
  CHECK(Tracked::live == 0);
  CHECK(f.domain->memory().blocks_live == 0);

  auto* const other = new Tracked[2];
  CHECK_THROWS_AS(
      Storage::wrap_elements({}, DataPtr(other, other, ops, cpu), tracked_ops, 2, {Place::here()}),
      std::invalid_argument);
  CHECK(Tracked::live == 0);
}

TEST_CASE("elements: made for an iteration that has closed, they are the runtime's") {
  DomainFixture f;
  CloseSeries series(f.domain, {.name = "t"});
  Owner closed;
  {
    OpenOwner it(series, 0, Place::here());
    closed = it.owner();
    const Storage mine = make(closed, 2);
    CHECK(mine.owner_kind() == OwnerKind::iteration);
  }
  const Storage late = make(closed, 2);
  CHECK(late.owner_kind() == OwnerKind::runtime);
  CHECK(f.domain->stats().storages_late == 1);
}
