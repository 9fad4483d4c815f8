// SPDX-License-Identifier: Apache-2.0
// Tensors on a device: made, filled, copied there, back and about, in the order of streams.
// [rt.tensor] [rt.stream]
#include "device_fixture.h"

#include <ebb/alloc/error.h>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::counted;
using ebb::test::DeviceRuntime;
using ebb::test::sum;

TEST_CASE("device tensor: a tensor's life on a device") {
  DeviceRuntime f;
  Loop loop(f.rt);
  {
    const StreamScope on(f.rt, f.a);
    Iteration it(loop);
    Tensor x = zeros(it, {4, 8}, DType::i32);
    CHECK(x.device() == f.device);
    CHECK(x.stream() == f.a.stream());
    x.fill_(3);
    CHECK(sum(x) == 96);
    CHECK(x.narrow(0, 1, 1).narrow(1, 2, 1).item<int>() == 3);
    const Tensor y = full(it, {3}, 1.5);
    CHECK(to_string(y) == "f32[3] sim:0\n[1.5, 1.5, 1.5]");
    CHECK_THROWS_WITH_AS(x.span<std::int32_t>(), doctest::Contains("only its device can use it"),
                         std::invalid_argument);
    x = Tensor();
    const Tensor kept = it.keep_copy(y);
    CHECK(kept.device() == f.device);
    CHECK(f.rt.memory(f.device).blocks_live == 2);
  }
  loop.finish();
}

TEST_CASE("device tensor: to() goes there and back without a loss while copies are slow") {
  DeviceRuntime f;
  f.machine.set_delay_all(std::chrono::microseconds(300));
  Loop loop(f.rt);
  for (int i = 0; i < 40; ++i) {
    const StreamScope on(f.rt, i % 2 == 0 ? f.a : f.b);
    const Iteration it(loop);
    const Tensor host = counted(f.rt.domain()->long_lived(), {64, 33}, i);
    const std::int64_t expected = sum(host);
    const Tensor there = host.to(f.device);
    const Tensor copy = there.to(i % 3 == 0 ? f.a : f.b);
    const Tensor narrowed = copy.narrow(1, 3, 20).clone();
    const Tensor back = copy.to(cpu);
    CHECK(back.device() == cpu);
    CHECK(sum(back) == expected);
    CHECK(sum(narrowed) == sum(host.narrow(1, 3, 20).clone()));
  }
  loop.finish();
}

TEST_CASE(
    "device tensor: from pageable memory to() does not block, and has read it when it returns") {
  DeviceRuntime f;
  f.machine.hold(f.a);
  const Tensor host = counted(f.rt, {1000});
  const std::int64_t expected = sum(host);
  const Tensor there = host.to(f.on(f.a));
  host.fill_(0);
  // What was staged is not used again while the copy has not run.
  const Tensor further = counted(f.rt, {1000}, 7).to(f.on(f.a));
  f.machine.resume(f.a);
  CHECK(sum(there) == expected);
  CHECK(sum(further) == expected + 7000);
}

TEST_CASE("device tensor: between the device and pinned memory nothing blocks") {
  DeviceRuntime f;
  const Tensor from = empty_pinned(f.rt, f.device, {1000}, DType::i32);
  CHECK(from.storage().is_pinned());
  from.copy_(counted(f.rt, {1000}));
  const Tensor to = empty_pinned(f.rt, f.device, {1000}, DType::i32);
  to.fill_(-1);
  f.machine.hold(f.a);
  const Tensor there = empty(f.on(f.a), {1000}, DType::i32);
  there.copy_(from);
  to.copy_(there);
  CHECK(to.narrow(0, 999, 1).item<int>() == -1);
  f.machine.resume(f.a);
  REQUIRE(synchronise(f.rt, f.a, std::chrono::seconds(10)));
  CHECK(sum(to) == sum(from));
}

TEST_CASE("device tensor: a copy to the host waits for the stream until the deadline") {
  DeviceRuntime f({.device_deadline = std::chrono::milliseconds(50)});
  const Tensor x = full(f.on(f.a), {10}, 1, DType::i32);
  f.machine.hold(f.a);
  CHECK_THROWS_WITH_AS(x.to(f.rt), doctest::Contains("not done after 50 ms"), DeviceError);
  CHECK_THROWS_AS(x.narrow(0, 0, 1).item<int>(), DeviceError);
  CHECK(to_string(x).find("not done after 50 ms") != std::string::npos);
  f.machine.resume(f.a);
}

TEST_CASE("device tensor: copies between streams come after what was queued, and before what is") {
  DeviceRuntime f;
  const Tensor x = zeros(f.on(f.a), {1000}, DType::i32);
  const Tensor y = zeros(f.on(f.b), {1000}, DType::i32);
  f.machine.hold(f.a);
  x.fill_(1);
  y.copy_(x);
  CHECK_FALSE(synchronise(f.rt, f.b, std::chrono::milliseconds(20)));
  f.machine.hold(f.b);
  f.machine.resume(f.a);
  x.fill_(2);
  f.machine.resume(f.b);
  CHECK(sum(y) == 1000);
  CHECK(sum(x) == 2000);
}

TEST_CASE("device tensor: every layout is copied") {
  DeviceRuntime f;
  const Tensor host = counted(f.rt, {4, 5, 6});
  const Tensor there = host.to(f.on(f.a));
  const std::array<std::int64_t, 1> backwards{-1};
  const auto expect = [&](const Tensor& device_view, const Tensor& host_view) {
    CHECK(to_string(device_view.to(f.rt)) == to_string(host_view.clone(f.rt)));
    CHECK(to_string(device_view.clone(f.rt).to(f.rt)) == to_string(host_view.clone(f.rt)));
  };
  expect(there.narrow(2, 1, 3), host.narrow(2, 1, 3));
  expect(there.narrow(1, 1, 3).narrow(2, 2, 2), host.narrow(1, 1, 3).narrow(2, 2, 2));
  expect(there.transpose(0, 2), host.transpose(0, 2));
  expect(there.narrow(0, 1, 1).expand({3, 5, 6}), host.narrow(0, 1, 1).expand({3, 5, 6}));
  expect(Tensor::strided(there.storage(), DType::i32, {7}, backwards, 20),
         Tensor::strided(host.storage(), DType::i32, {7}, backwards, 20));
  expect(there.narrow(0, 0, 0), host.narrow(0, 0, 0));
  // Into a part of a tensor, from numbers of another kind.
  there.narrow(2, 2, 2).copy_(full(f.rt, {4, 5, 2}, 7, DType::f64));
  host.narrow(2, 2, 2).fill_(7);
  expect(there, host);
}

TEST_CASE("device tensor: what a device cannot do is refused with the remedy") {
  DeviceRuntime f;
  const Tensor x = zeros(f.on(f.a), {4, 4}, DType::i32);
  const Tensor y = zeros(f.on(f.a), {4, 4}, DType::f32);
  CHECK_THROWS_WITH_AS(x.copy_(y), doctest::Contains("to(dtype)"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(x.narrow(0, 0, 3).copy_(x.narrow(0, 1, 3)), doctest::Contains("overlap"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(x.transpose(0, 1).narrow(0, 0, 2).fill_(1), doctest::Contains("contiguous"),
                       std::invalid_argument);
  CHECK_THROWS_AS(x.narrow(0, 0, 1).expand({4, 4}).copy_(x), std::invalid_argument);
  CHECK_THROWS_AS(empty(f.on(f.a), {2}, DType::string), std::invalid_argument);
  CHECK_THROWS_AS(x.to(Device{DeviceKind::cuda, 3}), std::invalid_argument);
  CHECK(x.copy_(x).defined());
}

TEST_CASE("device tensor: where pinned memory is short the driver copies by itself") {
  DeviceRuntime f({.pinned_limit = 1_KiB});
  const Tensor host = counted(f.rt, {1 << 20});
  const Tensor there = host.to(f.on(f.a));
  CHECK(sum(there) == sum(host));
  CHECK_THROWS_WITH_AS(there.copy_(full(f.rt, {1 << 20}, 1)), doctest::Contains("to(dtype)"),
                       std::invalid_argument);
}

TEST_CASE("device tensor: between devices, and in runtimes with limits") {
  SimMachine machine({.devices = 2, .memory = 64_MiB});
  Runtime rt({.devices = {cpu, machine.device(0), machine.device(1), machine.device(0)},
              .backend = machine.backend(),
              .device_limit = 48_MiB,
              .device_fraction = 0.5});
  const DeviceStream first(rt, machine.device(0));
  const DeviceStream second(rt, machine.device(1));
  const Tensor x = counted(rt, {1000}).to(rt.owner().on(first));
  const Tensor y = x.to(rt.owner().on(second));
  CHECK(y.device() == machine.device(1));
  CHECK(sum(y) == sum(x));
  CHECK_THROWS_AS(empty(rt.owner().on(first), {40 << 20}, DType::u8), OutOfMemory);
  CHECK(machine.violations().empty());
}

TEST_CASE("device tensor: options that cannot be are refused by name") {
  const SimMachine machine;
  const Device device = machine.device();
  const auto refused = [&](RuntimeOptions options, const char* part) {
    CHECK_THROWS_WITH_AS(Runtime(std::move(options)), doctest::Contains(part),
                         std::invalid_argument);
  };
  refused({.devices = {{DeviceKind::sim, 4}}, .backend = machine.backend()},
          "devices: there is no sim:4 here");
  refused({.devices = {{DeviceKind::sim, 0}}}, "devices: there is no sim:0 here");
  refused({.devices = {device}, .backend = machine.backend(), .device_fraction = 0},
          "device_fraction");
  refused({.devices = {device}, .backend = machine.backend(), .device_fraction = 1.5},
          "device_fraction");
  CHECK(machine.counts().of(SimCall::make_context) == 0);
}

TEST_CASE("device tensor: what is made long-lived is made on the thread's current stream") {
  DeviceRuntime f;
  Loop loop(f.rt);
  const StreamScope scope(f.rt, f.a);
  Tensor state;
  {
    Iteration it(loop);
    const LongLived own(f.rt);
    state = zeros({4}, DType::f32);
  }
  CHECK(state.stream() == f.a.stream());
  CHECK(state.storage().owner_kind() == OwnerKind::runtime);
}

TEST_CASE("device tensor: a conversion stays where the tensor is") {
  DeviceRuntime f;
  const StreamScope scope(f.rt, f.a);
  const Tensor host = full(f.on(Stream{}), {4}, 5, DType::f32);
  CHECK(host.clone().device() == cpu);
  const Tensor converted = host.to(DType::i32);
  CHECK(converted.device() == cpu);
  CHECK(converted.span<std::int32_t>()[3] == 5);
}

TEST_CASE("device tensor: it is copied, and launched with, also after its stream has ended") {
  DeviceRuntime f;
  Tensor x;
  {
    const DeviceStream brief(f.rt, f.device);
    x = full(f.on(brief), {1000}, 3, DType::i32);
  }
  const Tensor y = zeros(f.on(f.a), {1000}, DType::i32);
  y.copy_(x);
  CHECK(sum(y) == 3000);
  bool launched = false;
  launch(f.rt, f.a, {x}, [&](void*) { launched = true; });
  CHECK(launched);
}
