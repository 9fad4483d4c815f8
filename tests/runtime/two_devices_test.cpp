// SPDX-License-Identifier: Apache-2.0
// Two devices in one runtime: streams, plans and copies of both, and iterations that use both.
// [rt.global] [rt.stream] [gc.close]
#include "device_fixture.h"

#include <ebb/alloc/error.h>
#include <ebb/runtime/graph.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::counted;
using ebb::test::sum;

namespace {

struct TwoDevices {
  TwoDevices() = default;
  TwoDevices(const TwoDevices&) = delete;
  TwoDevices& operator=(const TwoDevices&) = delete;
  TwoDevices(TwoDevices&&) = delete;
  TwoDevices& operator=(TwoDevices&&) = delete;
  ~TwoDevices() {
    machine.resume_all();
    CHECK(machine.violations().empty());
  }
  Owner on(Stream stream) const { return rt.owner().on(stream); }

  SimMachine machine{{.devices = 3}};
  Runtime rt{{.executor = ebb::test::executor_choice(),
              .devices = {cpu, machine.device(0), machine.device(1)},
              .log = [](LogLevel, std::string_view) {},
              .backend = machine.backend()}};
  DeviceStream a{rt, machine.device(0)};
  DeviceStream b{rt, machine.device(1)};
};

}  // namespace

TEST_CASE("two devices: each has its memory, its streams and its figures") {
  TwoDevices f;
  const Tensor x = counted(f.rt, {1000}).to(f.on(f.a));
  const Tensor y = counted(f.rt, {100000}, 7).to(f.on(f.b));
  CHECK(x.device() == f.machine.device(0));
  CHECK(y.device() == f.machine.device(1));
  CHECK(f.rt.memory(x.device()).blocks_live == 1);
  CHECK(f.rt.memory(y.device()).blocks_live == 1);
  f.machine.hold(f.a);  // one is not stopped by the other
  x.fill_(1);
  y.fill_(2);
  CHECK(sum(y) == 200000);
  f.machine.resume(f.a);
  CHECK(sum(x) == 1000);
}

TEST_CASE("two devices: no context is made on one that is not used, or was not asked for") {
  SimMachine machine({.devices = 3});
  Runtime rt(
      {.devices = {cpu, machine.device(0), machine.device(1)}, .backend = machine.backend()});
  CHECK(machine.counts().of(SimCall::make_context) == 0);
  CHECK(rt.memory(machine.device(0)).reserved == Bytes{});
  const DeviceStream stream(rt, machine.device(1));
  CHECK(sum(counted(rt, {10}).to(rt.owner().on(stream))) == 45);
  CHECK(machine.counts().of(SimCall::make_context) == 1);
  CHECK(machine.memory(machine.device(0)).committed_peak == Bytes{});
  CHECK_THROWS_WITH_AS(DeviceStream(rt, machine.device(2)),
                       doctest::Contains("sim:2: name it in RuntimeOptions::devices"),
                       std::invalid_argument);
  CHECK(machine.counts().of(SimCall::make_context) == 1);
}

TEST_CASE("two devices: copies between them come after what both were given") {
  TwoDevices f;
  const Tensor x = counted(f.rt, {20, 30}).to(f.on(f.a));
  const Tensor y = zeros(f.on(f.b), {20, 30}, DType::i32);
  f.machine.set_delay(f.a, std::chrono::milliseconds(5));
  f.machine.set_delay(f.b, std::chrono::milliseconds(5));
  x.fill_(3);
  y.fill_(100);
  y.copy_(x);
  x.fill_(50);
  CHECK(sum(y) == 1800);
  y.fill_(4);
  x.copy_(y);
  y.fill_(60);
  CHECK(sum(x) == 2400);
  CHECK(sum(y.to(f.on(f.a))) == 36000);
  CHECK(sum(x.transpose(0, 1).to(f.on(f.b))) == 2400);
}

TEST_CASE("two devices: a tensor is refused on the other one's stream, with both names") {
  TwoDevices f;
  const Tensor x = zeros(f.on(f.a), {10});
  const auto both = [](auto function) {
    try {
      function();
    } catch (const std::invalid_argument& error) {
      const std::string text = error.what();
      INFO(text);
      CHECK(text.find("sim:0") != std::string::npos);
      CHECK(text.find("sim:1") != std::string::npos);
      return;
    }
    FAIL_CHECK("not refused");
  };
  both([&] { launch(f.rt, f.b, {x}, [](void*) { FAIL_CHECK("launched"); }); });
  both([&] { x.used_on(f.b); });
  both([&] { make_wait(f.rt, f.b, f.a); });
  both([&] { make_wait(f.rt, f.b, record(f.rt, f.a)); });
}

TEST_CASE("two devices: an iteration that used both is retired when both are done") {
  TwoDevices f;
  Loop loop(f.rt, {.name = "both", .in_flight = 1});
  const auto step = [&] {
    Iteration it(loop);
    zeros(it.owner().on(f.a), {100}).fill_(1);
    zeros(it.owner().on(f.b), {100}).fill_(1);
  };
  for (const Stream late : {f.a.stream(), f.b.stream()}) {
    CAPTURE(to_string(late.device));
    step();
    loop.finish();
    f.machine.hold(late);
    step();
    std::atomic<bool> resumed{false};
    std::jthread device([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      resumed = true;
      f.machine.resume(late);
    });
    const Iteration next(loop);
    CHECK(resumed);
  }
}

TEST_CASE("two devices: what a step makes on either is planned, or is right without") {
  TwoDevices f;
  Loop loop(f.rt, {.name = "planned", .warmup = 0});
  std::vector<std::vector<const void*>> addresses;
  for (int i = 0; i < 8; ++i) {
    {
      Iteration it(loop);
      const Tensor x = full(it.owner().on(f.a), {300, 300}, i, DType::i32);
      const Tensor y = full(it.owner().on(f.b), {200, 200}, i, DType::i32);
      const Tensor z = y.to(f.on(f.a));
      CHECK(sum(x) + sum(z) == 130000 * i);
      addresses.push_back({x.storage().data(), y.storage().data(), z.storage().data()});
    }
    loop.wait_plan();
  }
  loop.finish();
  CHECK(addresses[7] == addresses[6]);
  CHECK(f.rt.stats().storages_live == 0);
}

TEST_CASE("two devices: each has its graph at the same time") {
  TwoDevices f;
  const Tensor x = zeros(f.on(f.a), {100}, DType::i32);
  const Tensor y = zeros(f.on(f.b), {100}, DType::i32);
  Loop loop(f.rt, {.name = "graphs", .warmup = 0});
  GraphStep first(loop, f.a);
  GraphStep second(loop, f.b);
  for (int i = 1; i <= 10; ++i) {
    first.run([&](Iteration&) {
      const Tensor t = full({100}, 2, DType::i32);
      x.copy_(t);
    });
    second.run([&](Iteration&) {
      const Tensor t = full({100}, 3, DType::i32);
      y.copy_(t);
    });
    CHECK(sum(x) == 200);
    CHECK(sum(y) == 300);
    x.fill_(0);
    y.fill_(0);
    loop.wait_plan();
  }
  CHECK(first.is_captured());
  CHECK(second.is_captured());
}

TEST_CASE("two devices: that one is lost does not touch what the other does") {
  TwoDevices f;
  const Tensor x = zeros(f.on(f.a), {10});
  const Tensor y = counted(f.rt, {10}).to(f.on(f.b));
  f.machine.lose(f.machine.device(0));
  CHECK_THROWS_AS(x.fill_(1), DeviceError);
  CHECK(sum(y) == 45);
  CHECK_THROWS_AS(y.copy_(x), std::exception);
  CHECK(sum(y) == 45);
  CHECK(f.rt.empty_cache(f.machine.device(1)) > Bytes{});
  Loop loop(f.rt, {.in_flight = 1});
  CHECK_THROWS_AS(Iteration(loop).close(), DeviceError);  // told once
  for (int i = 0; i < 3; ++i) {
    const Iteration it(loop);
    CHECK(sum(full(it.owner().on(f.b), {10}, i, DType::i32)) == 10 * i);
  }
  loop.finish();
}
