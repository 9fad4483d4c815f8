// SPDX-License-Identifier: Apache-2.0
// Storages on a device and in pinned memory: where they are, who may have their memory next, and
// what is left when the runtime, a thread or the driver goes. [gc.owner] [rt.stream] [rt.exit]
#include "device_fixture.h"

#include <ebb/alloc/error.h>
#include <ebb/gc/live.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DeviceFixture;

namespace {

// Whether a block of the same size as those before has the address.
bool comes_back(const DeviceFixture& f, const void* address, bool pinned) {
  const Storage next =
      pinned ? DeviceFixture::make_pinned(f.owner()) : DeviceFixture::make(f.owner());
  return next.data() == address;
}

}  // namespace

TEST_CASE("device storage: its bytes are on the device of the owner's stream, by its pool") {
  DeviceFixture f;
  CHECK(f.machine.counts().of(SimCall::commit) == 0);
  {
    const Storage x = DeviceFixture::make(f.owner());
    CHECK(x.device() == f.device);
    CHECK(x.stream() == f.stream);
    CHECK_FALSE(x.is_pinned());
    CHECK(x.owner_kind() == OwnerKind::runtime);
    CHECK(f.domain->memory(f.device).blocks_live == 1);
    CHECK(f.domain->memory().blocks_live == 0);
    CHECK(live_storages(*f.domain).size() == 1);
    CHECK(f.domain->stats().storages_live == 1);
  }
  CHECK(f.domain->memory(f.device).blocks_live == 0);
  CHECK(live_storages(*f.domain).empty());
  CHECK(f.machine.memory(f.device).committed > 0_B);
  REQUIRE(f.see_done(f.stream));  // pages go when the device is known to be done with them
  CHECK(f.domain->trim() > 0_B);
  CHECK(f.machine.memory(f.device).committed == 0_B);
}

TEST_CASE("device storage: pinned memory is the host's, and known as pinned") {
  DeviceFixture f;
  const Storage x = DeviceFixture::make_pinned(f.owner());
  CHECK(x.device() == cpu);
  CHECK(x.is_pinned());
  CHECK(f.domain->pinned_memory(f.device).blocks_live == 1);
  CHECK(f.domain->memory(f.device).blocks_live == 0);
  *static_cast<int*>(x.data()) = 1;
}

TEST_CASE("device storage: devices and streams that are not the runtime's are refused by name") {
  DeviceFixture f;
  const Owner owner = f.domain->long_lived();
  CHECK_THROWS_WITH_AS(DeviceFixture::make(owner.on({{DeviceKind::sim, 7}})),
                       doctest::Contains("sim:7: name it in RuntimeOptions::devices"),
                       std::invalid_argument);
  const Stream gone = f.context->make_stream();
  f.context->destroy_stream(gone);
  CHECK_THROWS_WITH_AS(DeviceFixture::make(owner.on(gone)), doctest::Contains("[Storage::make]"),
                       std::invalid_argument);
  const Storage x = DeviceFixture::make(f.owner());
  CHECK_THROWS_AS(x.used_on({{DeviceKind::sim, 7}}), std::invalid_argument);
  CHECK(f.domain->stats().storages_live == 1);
}

TEST_CASE("device storage: what another stream uses is nobody's until that is done") {
  DeviceFixture f;
  Storage x = DeviceFixture::make(f.owner());
  const void* const address = x.data();
  f.machine.hold(f.other);
  f.work_with(x, f.other);
  x.reset();
  CHECK_FALSE(comes_back(f, address, false));
  f.machine.resume(f.other);
  REQUIRE(f.see_done(f.other));
  CHECK(comes_back(f, address, false));
}

TEST_CASE("device storage: what its own stream uses may be used there again at once") {
  DeviceFixture f;
  Storage x = DeviceFixture::make(f.owner());
  const void* const address = x.data();
  f.machine.hold(f.stream);
  f.work_with(x, f.stream);
  x.reset();
  CHECK(comes_back(f, address, false));
  f.machine.resume(f.stream);
}

TEST_CASE("device storage: pinned memory is nobody's until the host has seen that a copy is done") {
  DeviceFixture f;
  Storage x = DeviceFixture::make_pinned(f.owner());
  const void* const address = x.data();
  f.machine.hold(f.stream);
  f.work_with(x, f.stream);
  x.reset();
  CHECK_FALSE(comes_back(f, address, true));
  f.context->wait(f.other, f.stream);  // an order of streams is none of the host's
  CHECK_FALSE(comes_back(f, address, true));
  f.machine.resume(f.stream);
  REQUIRE(f.see_done(f.stream));
  CHECK(comes_back(f, address, true));
}

TEST_CASE("device storage: a refusal tells what is held there, and leaves nothing behind") {
  DeviceFixture f(4_MiB);
  const Storage x = DeviceFixture::make(f.owner(), 3_MiB);
  CHECK_THROWS_WITH_AS(DeviceFixture::make(f.owner(), 3_MiB),
                       doctest::Contains("device_storage_test.cpp"), OutOfMemory);
  CHECK(f.domain->stats().storages_live == 1);
  CHECK(f.domain->memory(f.device).blocks_live == 1);
}

TEST_CASE(
    "device storage: it may be dropped on any thread, and outlive the runtime and the driver") {
  std::optional<DeviceFixture> f(std::in_place);
  Storage held = DeviceFixture::make(f->owner());
  Storage pinned = DeviceFixture::make_pinned(f->owner());
  std::jthread([&] { Storage(DeviceFixture::make(f->owner())).reset(); }).join();
  f->domain->shutdown();
  CHECK(f->logged("2 storages") == 1);
  CHECK_THROWS_AS(DeviceFixture::make(f->owner()), std::invalid_argument);
  SUBCASE("the runtime goes first") {
    f.reset();
  }
  SUBCASE("the driver goes first") {
    f->machine.shut_down();
    f.reset();
  }
  std::jthread([last = std::move(held)]() mutable { last.reset(); }).join();
  pinned.reset();
}

TEST_CASE("device storage: a thread keeps its heap, a pool's thread gives it back with the scope") {
  DeviceFixture f;
  const Owner owner = f.owner();
  std::optional<Storage> first;
  const auto heaps = [&f] { return f.domain->memory(f.device).heaps; };
  SUBCASE("by scope") {
    const OwnerScope scope(owner, HeapStay::with_scope);
    first.emplace(DeviceFixture::make(owner));
  }
  SUBCASE("by thread") {
    std::jthread([&] { first.emplace(DeviceFixture::make(owner)); }).join();
  }
  CHECK(heaps() == 1);
  std::jthread([&] {
    const Storage second = DeviceFixture::make(owner);
    CHECK(heaps() == 1);
    const OwnerScope scope(owner, HeapStay::with_scope);  // does not part the thread from it
    const Storage third = DeviceFixture::make(owner);
    CHECK(heaps() == 1);
  }).join();
  const Storage fourth = DeviceFixture::make(owner);
  CHECK(heaps() == 1);
}

TEST_CASE("device storage: a thread that outlives many runtimes keeps no heap of theirs") {
  std::vector<std::weak_ptr<Domain>> ended;
  for (int i = 0; i < 12; ++i) {
    std::optional<DeviceFixture> f(std::in_place);
    ended.push_back(f->domain);
    static_cast<void>(DeviceFixture::make(f->owner()));
    std::jthread([&] { f->domain->shutdown(); }).join();
    f.reset();
  }
  DeviceFixture f;
  static_cast<void>(DeviceFixture::make(f.owner()));
  const auto is_gone = [](const auto& it) { return it.expired(); };
  CHECK(std::all_of(ended.begin(), ended.end(), is_gone));
}

TEST_CASE("device storage: on a lost device nothing is made, and what is there can be dropped") {
  DeviceFixture f;
  Storage x = DeviceFixture::make(f.owner());
  f.machine.lose(f.device);
  CHECK_THROWS_AS(f.context->record(f.stream), DeviceError);
  CHECK_THROWS_AS(DeviceFixture::make(f.owner()), DeviceError);
  x.reset();
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("stream scope: what names no owner is on its stream; iterations inherit it") {
  DeviceFixture f;
  CloseSeries series(f.domain, {});
  {
    const StreamScope on(f.domain->long_lived(), f.stream);
    CHECK(Owner::current("test").stream() == f.stream);
    OpenOwner it(series, 0, Place::here());
    CHECK(it.owner().stream() == f.stream);
    {
      const StreamScope further(f.domain->long_lived(), f.other);
      CHECK(Owner::current("test") == it.owner().on(f.other));
      CHECK(DeviceFixture::make(Owner::current("test")).stream() == f.other);
    }
    CHECK(Owner::current("test") == it.owner());
    CHECK(it.close().clean());
  }
  CHECK_FALSE(Owner::current_or_none());
  CHECK_THROWS_AS(StreamScope(f.domain->long_lived(), {{DeviceKind::sim, 7}}),
                  std::invalid_argument);
}
