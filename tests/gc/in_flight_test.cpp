// SPDX-License-Identifier: Apache-2.0
// Iterations that have closed while devices still work for them. [gc.close]
#include "domain_fixture.h"
#include "running_clock.h"

#include <ebb/alloc/error.h>
#include <ebb/gc/job.h>

#include <doctest/doctest.h>

#include <optional>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::DomainFixture;
using ebb::test::RunningClock;

namespace {

// A loop whose iterations each leave a piece of device work behind.
struct DeviceLoop {
  DomainFixture f;
  CloseSeries series;
  std::vector<Job> work;
  std::uint64_t next = 0;

  explicit DeviceLoop(CloseOptions options) : series(f.domain, std::move(options)) {}

  void iterate() {
    OpenOwner it(series, next++, Place::here());
    work.push_back(Job::on_device(it.owner()));
    CHECK(it.close().clean());  // no close waits for a device
  }
};

}  // namespace

TEST_CASE("in_flight: so many iterations run ahead of the device, and the next one waits") {
  DeviceLoop loop({.in_flight = 2});
  loop.iterate();
  loop.iterate();
  CHECK(loop.f.clock.waits() == 0);
  std::jthread device([&] {
    while (loop.f.clock.waits() == 0) {
      std::this_thread::yield();
    }
    loop.work[0].finish();
  });
  {
    OpenOwner it(loop.series, 2, Place::here());
    CHECK(loop.f.clock.waits() > 0);
  }
  device.join();
  loop.work[1].finish();
  const unsigned waits = loop.f.clock.waits();
  loop.iterate();
  loop.series.rethrow_stored();
  CHECK(loop.f.clock.waits() == waits);
  loop.work.clear();
  loop.series.finish();
}

TEST_CASE("in_flight: a device that does not end is named every few seconds, and at last thrown") {
  DeviceLoop loop({.name = "train", .in_flight = 1, .device_deadline = std::chrono::seconds(20)});
  loop.iterate();
  const RunningClock running(loop.f.clock);
  CHECK_THROWS_WITH_AS(loop.iterate(), doctest::Contains("loop \"train\", iteration 0 is closed"),
                       DeviceError);
  CHECK(loop.f.logged("a device still works for it"));
  CHECK_THROWS_AS(loop.series.finish(), DeviceError);
  loop.work.clear();
  loop.iterate();
  loop.work.clear();
}

TEST_CASE("in_flight: finish() waits for the last ones; a loop may end before its devices") {
  std::optional<DeviceLoop> loop(std::in_place, CloseOptions{.in_flight = 8});
  for (int i = 0; i < 5; ++i) {
    loop->iterate();
  }
  std::jthread device([&] {
    while (loop->f.clock.waits() == 0) {
      std::this_thread::yield();
    }
    for (Job& job : loop->work) {
      job.finish();
    }
  });
  loop->series.finish();
  device.join();
  loop->iterate();
  std::vector<Job> late = std::move(loop->work);
  loop.reset();
  late.clear();
}

TEST_CASE("in_flight: straggling and device work together keep both promises") {
  DeviceLoop loop({.deadline = std::chrono::milliseconds(0), .warmup = 0, .in_flight = 3});
  Storage held;
  {
    OpenOwner it(loop.series, 0, Place::here());
    loop.work.push_back(Job::on_device(it.owner()));
    held = DomainFixture::make();
    CHECK(it.close().stragglers == 1);
  }
  CHECK(held.owner_kind() == OwnerKind::runtime);
  loop.iterate();
  loop.work.clear();
  loop.series.finish();
  CHECK(loop.f.clock.waits() == 0);
}
