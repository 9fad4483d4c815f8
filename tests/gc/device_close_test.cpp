// SPDX-License-Identifier: Apache-2.0
// Iterations that use a device: closed and retired, what straggles there, a device that is lost,
// and plans. [gc.close] [alloc.replay]
#include "device_fixture.h"
#include "running_clock.h"

#include <ebb/alloc/error.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DeviceFixture;
using ebb::test::RunningClock;

namespace {

struct DeviceLoop : DeviceFixture {
  explicit DeviceLoop(CloseOptions options) : series(domain, std::move(options)) {}

  // An iteration that gives the device work with memory of its own.
  void iterate() {
    OpenOwner it(series, next++, Place::here());
    work_with(make(it.owner().on(stream)), stream);
    CHECK(it.close().clean());
  }

  CloseSeries series;
  std::uint64_t next = 0;
};

}  // namespace

TEST_CASE("device close: work that a device has not done yet is no straggler") {
  DeviceLoop loop({.in_flight = 2});
  loop.machine.hold(loop.stream);
  loop.iterate();
  loop.iterate();
  CHECK(loop.clock.waits() == 0);
  loop.machine.resume(loop.stream);
  loop.series.finish();
}

TEST_CASE("device close: an open waits while in_flight iterations are not retired") {
  DeviceLoop loop({.in_flight = 2});
  loop.machine.hold(loop.stream);
  loop.iterate();
  loop.iterate();
  std::atomic<bool> resumed{false};
  std::jthread device([&] {
    while (loop.clock.waits() == 0) {
      std::this_thread::yield();
    }
    resumed = true;
    loop.machine.resume(loop.stream);
  });
  OpenOwner it(loop.series, 2, Place::here());
  CHECK(resumed);
}

TEST_CASE("device close: streams that were only used are waited for too, those before are not") {
  DeviceLoop loop({.in_flight = 1});
  const Storage x = DeviceFixture::make(loop.owner());
  loop.machine.hold(loop.other);
  loop.work_with(x, loop.other);  // before any iteration
  loop.iterate();
  REQUIRE(loop.see_done(loop.stream));
  loop.iterate();
  CHECK(loop.clock.waits() == 0);
  {
    OpenOwner it(loop.series, 2, Place::here());
    loop.work_with(x, loop.other);
    CHECK(it.close().clean());
  }
  const RunningClock running(loop.clock);
  CHECK_THROWS_AS(loop.iterate(), DeviceError);
  loop.machine.resume(loop.other);
}

TEST_CASE("device close: a device that does not come on is named, and thrown at the deadline") {
  DeviceLoop loop({.name = "train", .in_flight = 1, .device_deadline = std::chrono::seconds(20)});
  loop.machine.hold(loop.stream);
  loop.iterate();
  {
    const RunningClock running(loop.clock);
    CHECK_THROWS_WITH_AS(loop.iterate(),
                         "[Iteration::Iteration] failed on sim:0: loop \"train\", iteration 0 is "
                         "closed, and a device still works for it after 20000 ms",
                         DeviceError);
    CHECK_THROWS_WITH_AS(loop.series.finish(),
                         doctest::Contains("[Loop::finish] failed on sim:0: loop \"train\""),
                         DeviceError);
  }
  loop.machine.resume(loop.stream);
  loop.iterate();
  loop.series.finish();
}

TEST_CASE("device close: a loop may end before its device, and its records are used again") {
  DeviceFixture f;
  f.machine.hold(f.stream);
  {
    CloseSeries series(f.domain, {.in_flight = 8});
    for (std::uint64_t i = 0; i < 4; ++i) {
      OpenOwner it(series, i, Place::here());
      f.work_with(DeviceFixture::make(it.owner().on(f.stream)), f.stream);
    }
  }
  CloseSeries series(f.domain, {.in_flight = 1});
  {
    OpenOwner it(series, 0, Place::here());
    CHECK(it.close().clean());
  }
  { OpenOwner it(series, 1, Place::here()); }  // of the first series' work this one knows nothing
  CHECK(f.clock.waits() == 0);
  f.machine.resume(f.stream);
}

TEST_CASE("device close: what is still referenced straggles, and is adopted, as on the host") {
  DeviceLoop loop({.deadline = std::chrono::milliseconds(0), .warmup = 0});
  Storage held;
  {
    OpenOwner it(loop.series, 0, Place::here());
    held = DeviceFixture::make(it.owner().on(loop.stream));
    const CloseResult result = it.close();
    CHECK(result.stragglers == 1);
    REQUIRE(result.report != nullptr);
    CHECK(result.report->text().find("device_close_test.cpp") != std::string::npos);
  }
  CHECK(held.owner_kind() == OwnerKind::runtime);
  held.reset();
  CHECK(loop.domain->stats().adopted_live == 0);
}

TEST_CASE("device close: memory of a device is not revoked, nor is pinned memory") {
  DeviceLoop loop(
      {.deadline = std::chrono::milliseconds(0), .policy = Policy::revoke, .warmup = 0});
  OpenOwner it(loop.series, 0, Place::here());
  const Storage x = DeviceFixture::make(it.owner().on(loop.stream));
  const Storage y = DeviceFixture::make_pinned(it.owner().on(loop.stream));
  const CloseResult result = it.close();
  CHECK(result.stragglers == 2);
  CHECK(result.revoked == 0);
  CHECK_FALSE(x.revoked());
  CHECK_FALSE(y.revoked());
}

TEST_CASE("device close: that a device was lost is thrown and logged once, and the host goes on") {
  DeviceLoop loop({.in_flight = 1});
  loop.machine.hold(loop.stream);
  loop.iterate();
  loop.machine.lose(loop.device);
  CHECK_THROWS_WITH_AS(loop.iterate(), doctest::Contains("was lost"), DeviceError);
  CHECK(loop.logged("sim:0 was lost") == 1);
  for (std::uint64_t i = 0; i < 3; ++i) {
    OpenOwner it(loop.series, i, Place::here());
    const Storage x = Storage::make(it.owner(), 64_B, default_align_cpu, {});
    CHECK_THROWS_AS(DeviceFixture::make(it.owner().on(loop.stream)), DeviceError);
  }
  loop.series.finish();
  CHECK(loop.logged("was lost") == 1);
}

TEST_CASE("device close: in a guard's destructor the loss is kept for the next open") {
  DeviceLoop loop({});
  {
    const OpenOwner it(loop.series, 0, Place::here());
    loop.work_with(DeviceFixture::make(it.owner().on(loop.stream)), loop.stream);
    loop.machine.lose(loop.device);
  }
  CHECK_THROWS_AS(loop.iterate(), DeviceError);
  { const OpenOwner it(loop.series, 1, Place::here()); }
  loop.series.finish();
}

TEST_CASE("device close: what iterations make on a device is planned") {
  DeviceLoop loop({.in_flight = 4});
  std::vector<const void*> addresses;
  const auto step = [&] {
    OpenOwner it(loop.series, loop.next++, Place::here());
    const Owner owner = it.owner().on(loop.stream);
    const Storage host = Storage::make(it.owner(), 4096_B, default_align_cpu, {Place::here()});
    const Storage x = DeviceFixture::make(owner, 300_KiB);
    Storage y = DeviceFixture::make(owner, 200_KiB);
    loop.work_with(y, loop.stream);
    y.reset();
    const Storage z = DeviceFixture::make(owner, 100_KiB);
    loop.work_with(z, loop.stream);
    addresses.push_back(x.data());
  };
  for (int i = 0; i < 3; ++i) {
    step();
  }
  REQUIRE(loop.series.wait_plan(std::chrono::seconds(30)));
  for (int i = 0; i < 10; ++i) {
    step();
  }
  loop.series.finish();
  CHECK(loop.series.plans().size() == 1);
  const auto sets = loop.series.device_plans();
  REQUIRE(sets.size() == 1);
  const PlanSetStats stats = sets[0]->stats();
  CHECK(stats.iterations == 13);
  CHECK(stats.followed >= 9);
  CHECK(stats.height == 500_KiB);
  CHECK(addresses.back() == addresses[addresses.size() - 2]);
}

TEST_CASE("device close: a steady iteration asks the driver for no memory, and for one event") {
  DeviceLoop loop({.in_flight = 2});
  const auto iterate = [&loop](int count) {
    for (int i = 0; i < count; ++i) {
      loop.iterate();
    }
  };
  iterate(10);
  REQUIRE(loop.series.wait_plan(std::chrono::seconds(30)));
  iterate(10);
  const SimCounts before = loop.machine.counts();
  iterate(50);
  const SimCounts after = loop.machine.counts();
  const auto calls = [&](SimCall call) { return after.of(call) - before.of(call); };
  CHECK(calls(SimCall::reserve) + calls(SimCall::commit) == 0);
  CHECK(calls(SimCall::decommit) + calls(SimCall::release) == 0);
  CHECK(calls(SimCall::record) <= 50);
  CHECK(calls(SimCall::make_event) <= 3);  // as many as are in flight, if they were not before
  CHECK(calls(SimCall::wait) == 0);
  loop.series.finish();
}

TEST_CASE("device close: without plans nothing is recorded") {
  DeviceLoop loop({.plans = false});
  for (int i = 0; i < 4; ++i) {
    loop.iterate();
  }
  CHECK(loop.series.plans().empty());
  CHECK(loop.series.device_plans().empty());
}

TEST_CASE("device close: threads make, use and drop while iterations close") {
  DeviceLoop loop({.in_flight = 3});
  constexpr int rounds = 200;
  for (int i = 0; i < rounds; ++i) {
    OpenOwner it(loop.series, loop.next++, Place::here());
    const Owner owner = it.owner().on(loop.stream);
    Storage shared = DeviceFixture::make(owner);
    loop.work_with(shared, loop.stream);
    std::jthread worker([&loop, owner, mine = shared]() mutable {
      const OwnerScope scope(owner, HeapStay::with_scope);
      const Storage own = DeviceFixture::make(owner.on(loop.other));
      loop.work_with(own, loop.other);
      loop.context->wait(loop.other, loop.stream);
      loop.work_with(mine, loop.other);
      mine.reset();
    });
    shared.reset();
    worker.join();
    CHECK(it.close().clean());
  }
  loop.series.finish();
  loop.domain->trim();  // takes back what other threads have freed
  CHECK(loop.domain->memory(loop.device).blocks_live == 0);
}
