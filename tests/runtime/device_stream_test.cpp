// SPDX-License-Identifier: Apache-2.0
// Streams as users have them: ebb's own and the host's, their order, launches and host functions,
// values that are logged, and the end of it all. [rt.stream] [rt.loop] [rt.exit]
#include "device_fixture.h"
#include "support/later.h"
#include "support/sanitized.h"

#include <ebb/alloc/device_context.h>
#include <ebb/alloc/error.h>
#include <ebb/gc/storage.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::counted;
using ebb::test::DeviceRuntime;
using ebb::test::sum;

namespace {

constexpr std::chrono::seconds patience{10};

double last_of(Loop& loop, std::size_t index = 0) {
  return loop.logged().at(index).last;
}

}  // namespace

TEST_CASE("device stream: it is known while the guard lives, and its number is not used again") {
  DeviceRuntime f;
  DeviceStream stream(f.rt, f.device);
  const Stream known = stream;
  CHECK(known.device == f.device);
  DeviceStream moved = std::move(stream);
  CHECK(moved.stream() == known);
  CHECK(stream_handle(f.rt, known) != nullptr);
  moved = DeviceStream(f.rt, f.device);
  CHECK(moved.stream() != known);
  CHECK_THROWS_AS(record(f.rt, known), std::invalid_argument);
  CHECK_THROWS_AS(DeviceStream(f.rt, {DeviceKind::sim, 7}), std::invalid_argument);
  const std::uint64_t before = f.machine.counts().streams;
  { const DeviceStream further(f.rt, f.device); }
  CHECK(f.machine.counts().streams == before);
}

TEST_CASE("device stream: the host's streams are borrowed, and stay the host's") {
  DeviceRuntime f;
  void* const handle = f.machine.host_stream(f.device);
  {
    const DeviceStream borrowed = borrow_stream(f.rt, f.device, handle);
    CHECK(stream_handle(f.rt, borrowed) == handle);
    CHECK(sum(counted(f.rt, {10}).to(f.on(borrowed))) == 45);
  }
  const DeviceStream again = borrow_stream(f.rt, f.device, handle);
  CHECK(sum(counted(f.rt, {10}).to(f.on(again))) == 45);
}

// A guard that nobody holds would end first.
static_assert(std::is_constructible_v<StreamScope, Runtime&, DeviceStream&>);
static_assert(std::is_constructible_v<StreamScope, Runtime&, const DeviceStream&>);
static_assert(std::is_constructible_v<StreamScope, Runtime&, Stream>);
static_assert(!std::is_constructible_v<StreamScope, Runtime&, DeviceStream>);

TEST_CASE("device stream: points, waits between streams, and synchronise") {
  DeviceRuntime f;
  f.machine.hold(f.a);
  const Tensor x = zeros(f.on(f.a), {10}, DType::i32);
  const StreamPoint point = record(f.rt, f.a);
  make_wait(f.rt, f.b, f.a);
  CHECK_FALSE(is_done(f.rt, point));
  CHECK_FALSE(synchronise(f.rt, f.b, std::chrono::milliseconds(20)));
  f.machine.resume(f.a);
  CHECK(synchronise(f.rt, f.b, patience));
  CHECK(is_done(f.rt, point));
}

TEST_CASE("launch: the order of streams and the life of memory are seen to") {
  DeviceRuntime f;
  f.machine.hold(f.a);
  Tensor x = full(f.on(f.a), {1000}, 1, DType::i32);
  const void* const address = x.storage().data();
  const Tensor y = zeros(f.on(f.b), {1000}, DType::i32);
  launch(f.rt, f.b, {x, y}, [&](void* handle) {
    CHECK(handle == stream_handle(f.rt, f.b));
    f.rt.domain()
        ->use(f.b, "test")
        .copy(y.data<std::int32_t>(), x.data<const std::int32_t>(), x.bytes(), f.b);
  });
  f.machine.hold(f.b);
  x.fill_(2);  // after the launch
  f.machine.resume(f.a);
  x = Tensor();
  CHECK(empty(f.on(f.a), {1000}, DType::i32).storage().data() != address);
  f.machine.resume(f.b);
  CHECK(sum(y) == 1000);
  const Tensor host = counted(f.rt, {10});
  CHECK_THROWS_WITH_AS(launch(f.rt, f.b, {host}, [](void*) {}), doctest::Contains("to()"),
                       std::invalid_argument);
}

TEST_CASE("launch: what was queued before an exception is in order with what comes") {
  DeviceRuntime f;
  const Tensor x = counted(f.rt, {1}).to(f.on(f.a));
  f.machine.hold(f.b);
  CHECK_THROWS_WITH(launch(f.rt, f.b, {x},
                           [&](void*) {
                             launch_host(f.rt, f.b, [to = x.data<std::int32_t>()] { *to = 7; });
                             throw std::runtime_error("of the host");
                           }),
                    "of the host");
  const ebb::test::Later later([&f] { f.machine.resume(f.b); });
  CHECK(x.item<std::int32_t>() == 7);
}

TEST_CASE("host function: it runs in the stream's order, on another thread, as work of its owner") {
  DeviceRuntime f;
  Loop loop(f.rt, {.in_flight = 1});
  std::atomic<bool> has_run{false};
  f.machine.hold(f.a);
  {
    Iteration it(loop);
    launch_host(f.rt, f.a, [&, here = std::this_thread::get_id()] {
      CHECK(std::this_thread::get_id() != here);
      has_run = true;
    });
    CHECK(it.close().clean());
  }
  CHECK_FALSE(has_run);
  f.machine.resume(f.a);
  const Iteration next(loop);
  CHECK(has_run);
}

TEST_CASE("host function: what it drops is released by a close, what it throws is its error") {
  DeviceRuntime f;
  Loop loop(f.rt);
  std::atomic<bool> finalized{false};
  std::atomic<bool> ended{false};
  {
    Iteration it(loop);
    auto held = std::make_shared<Tensor>(zeros(it.owner().on(f.a), {10}));
    Storage(held->storage())
        .add_finalizer([](void* flag) noexcept { *static_cast<std::atomic<bool>*>(flag) = true; },
                       &finalized);
    launch_host(f.rt, f.a, [&, last = std::move(held)]() mutable {
      last.reset();
      CHECK_FALSE(finalized);
      ended = true;
      throw std::runtime_error("in a callback");
    });
    while (!ended) {
      std::this_thread::yield();
    }
    REQUIRE(synchronise(f.rt, f.a, patience));
    CHECK_THROWS_WITH_AS(it.close(), "in a callback", std::runtime_error);
    CHECK(finalized);
  }
  CHECK_THROWS_AS(launch_host(f.rt, f.a, nullptr), std::invalid_argument);
}

TEST_CASE("host function: what it throws after its iteration has closed, its loop throws, once") {
  std::atomic<int> logged{0};
  DeviceRuntime f({.log = [&](LogLevel, std::string_view text) {
    logged += text.find("late") != std::string_view::npos ? 1 : 0;
  }});
  Loop loop(f.rt);
  const auto fail_late = [&] {
    f.machine.hold(f.a);
    Iteration it(loop);
    launch_host(f.rt, f.a, [] { throw std::runtime_error("late"); });
    CHECK(it.close().clean());
  };
  fail_late();
  { const Iteration it(loop); }
  f.machine.resume(f.a);
  REQUIRE(synchronise(f.rt, f.a, patience));
  CHECK_THROWS_WITH_AS(Iteration(loop).close(), "late", std::runtime_error);
  CHECK(logged == 1);
  { const Iteration it(loop); }
  loop.finish();
  fail_late();
  f.machine.resume(f.a);
  CHECK_THROWS_WITH_AS(loop.finish(), "late", std::runtime_error);
  loop.finish();
  { const Iteration it(loop); }
}

TEST_CASE("host function: what it throws after its loop has ended is no other loop's error") {
  DeviceRuntime f({.log = [](LogLevel, std::string_view) {}});
  {
    Loop loop(f.rt);
    f.machine.hold(f.a);
    const Iteration it(loop);
    launch_host(f.rt, f.a, [] { throw std::runtime_error("late"); });
  }
  f.machine.resume(f.a);
  REQUIRE(synchronise(f.rt, f.a, patience));
  Loop other(f.rt);
  for (int i = 0; i < 5; ++i) {
    Iteration outer(other);
    Iteration(other).close();
    outer.close();
  }
  other.finish();
}

TEST_CASE("host function: the runtime's end waits for it") {
  std::optional<DeviceRuntime> f(std::in_place);
  f->machine.set_delay(f->a, std::chrono::milliseconds(20));
  std::atomic<bool> has_run{false};
  launch_host(f->rt, f->a, [&] { has_run = true; });
  f.reset();
  CHECK(has_run);
}

TEST_CASE(
    "log: the value of a device is read when the device gets there, and keeps nothing alive") {
  DeviceRuntime f;
  Loop loop(f.rt, {.in_flight = 4});
  f.machine.hold(f.a);
  {
    Iteration it(loop);
    const Tensor loss = full(it.owner().on(f.a), {}, 2.5);
    it.log("loss", loss);
    it.log("step", 1);
  }
  REQUIRE(loop.logged().size() == 2);
  CHECK(loop.logged()[0].count == 0);
  CHECK(last_of(loop, 1) == 1);
  CHECK(f.rt.memory(f.device).blocks_live == 0);
  f.machine.resume(f.a);
  loop.finish();
  CHECK(last_of(loop) == 2.5);
  CHECK(f.rt.stats().storages_live == 0);
}

TEST_CASE("log: more values than are kept coming wait for the oldest, and none is lost") {
  DeviceRuntime f({.device_deadline = std::chrono::milliseconds(100)});
  Loop loop(f.rt);
  constexpr int values = 1000;
  const Tensor x = zeros(f.on(f.a), {}, DType::i32);
  {
    Iteration it(loop);
    for (int i = 1; i <= values; ++i) {
      x.fill_(i);
      it.log("x", x);
    }
  }
  loop.finish();
  const LoggedValue logged = loop.logged().at(0);
  CHECK(logged.count == values);
  CHECK(logged.last == values);
  CHECK(logged.mean == doctest::Approx((values + 1) / 2.0));
  f.machine.hold(f.a);
  Iteration it(loop);
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < values; ++i) {
          it.log("x", x);
        }
      }(),
      DeviceError);
  CHECK_THROWS_AS(it.log("y", zeros(f.on(f.b), {2})), std::invalid_argument);
  f.machine.resume(f.a);
}

TEST_CASE("end: tensors, streams, loops and the runtime go in any order, also after the driver") {
  for (int order = 0; order < 12; ++order) {
    CAPTURE(order);
    auto machine = std::make_unique<SimMachine>();
    const std::weak_ptr<Backend> driver = machine->backend();
    auto rt = std::make_unique<Runtime>(RuntimeOptions{.devices = {cpu, machine->device()},
                                                       .log = [](LogLevel, std::string_view) {},
                                                       .backend = machine->backend()});
    const std::weak_ptr<Domain> lifetimes = rt->domain();
    auto loop = std::make_unique<Loop>(*rt);
    auto stream = std::make_unique<DeviceStream>(*rt, machine->device());
    Tensor x = zeros(rt->owner().on(*stream), {100});
    Tensor y = empty_pinned(*rt, machine->device(), {100});
    {
      Iteration it(*loop);
      it.log("x", x.narrow(0, 0, 1).reshape({}));
    }
    if (order >= 6) {
      machine->shut_down();
    }
    switch (order % 6) {
      case 0:
        stream.reset();
        rt.reset();
        break;
      case 1:
        rt.reset();
        stream.reset();
        break;
      case 2:
        x = Tensor();
        rt.reset();
        break;
      case 3:
        loop.reset();
        rt.reset();
        y = Tensor();
        break;
      case 4:
        std::jthread([&] { x = Tensor(); }).join();
        stream.reset();
        break;
      default:
        break;
    }
    loop.reset();
    rt.reset();
    stream.reset();
    machine.reset();
    x = Tensor();
    y = Tensor();
    CHECK(driver.expired());
    CHECK(lifetimes.expired());
  }
}

TEST_CASE("end: a StreamScope may end before an iteration within it, or after its runtime") {
  for (const bool crosses : {true, false}) {
    CAPTURE(crosses);
    const SimMachine machine;
    auto rt = std::make_unique<Runtime>(
        RuntimeOptions{.devices = {machine.device()}, .backend = machine.backend()});
    auto loop = std::make_unique<Loop>(*rt);
    std::jthread([&] {
      auto scope = std::make_unique<StreamScope>(*rt, Stream{machine.device()});
      auto it = std::make_unique<Iteration>(*loop);
      if (crosses) {
        scope.reset();
      }
      it.reset();
      loop.reset();
      rt.reset();
      CHECK_THROWS_WITH_AS(empty({3}), doctest::Contains("the runtime has been destroyed"),
                           std::invalid_argument);
    }).join();
  }
}

TEST_CASE("loss: it is said at the next open, and the host goes on") {
  DeviceRuntime f({.log = [](LogLevel, std::string_view) {}});
  Loop loop(f.rt, {.in_flight = 1});
  const Tensor x = zeros(f.on(f.a), {10});
  f.machine.hold(f.a);
  {
    Iteration it(loop);
    it.log("x", x.narrow(0, 0, 1));
    launch_host(f.rt, f.a, [] {});
  }
  f.machine.lose(f.device);
  CHECK_THROWS_AS(x.fill_(1), DeviceError);
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const DeviceError& error) {
      return error.code();
    }
    return -1;
  };
  CHECK(code_of([&] { Iteration(loop).close(); }) == 700);
  CHECK(code_of([&] { x.fill_(1); }) == 700);
  for (int i = 0; i < 3; ++i) {
    const Iteration it(loop);
    CHECK(sum(counted(it, {4})) == 6);
    CHECK_THROWS_AS(x.to(f.rt), DeviceError);
  }
  loop.finish();
  CHECK(loop.logged().at(0).count == 0);  // that never arrives
}

TEST_CASE("end: a function that no device comes to is not waited for for ever") {
  if (ebb::test::is_sanitized()) {
    return;  // it tells of the stream's thread, which is left behind too
  }
  std::atomic<bool> has_run{false};
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  SimMachine machine;
  {
    Runtime rt({.devices = {machine.device()},
                .log = [](LogLevel, std::string_view) {},
                .backend = machine.backend(),
                .device_deadline = std::chrono::milliseconds(50)});
    const DeviceStream stream(rt, machine.device());
    machine.hold(stream);
    launch_host(rt, stream, [&has_run, kept = std::move(held)] { has_run = true; });
  }
  machine.resume_all();
  CHECK(machine.drain());
  CHECK_FALSE(has_run);
  CHECK_FALSE(watched.expired());  // left behind
}
