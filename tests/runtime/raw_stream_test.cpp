// SPDX-License-Identifier: Apache-2.0
// it.raw(stream), the allocator that Thrust gets, on a device: in the order of its stream.
// tests/gpu/thrust_test.cu has Thrust itself. [rt.tensor] [alloc.resource]
#include "device_fixture.h"

#include <ebb/alloc/error.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DeviceRuntime;

TEST_CASE("raw memory of a stream: it is of the device, on its alignment, and the iteration's") {
  DeviceRuntime f;
  Loop loop(f.rt, {.deadline = Milliseconds(0), .warmup = 0});
  Iteration it(loop);
  const Place place{"sort.cpp", 7};
  const RawMemory raw = it.raw(f.a, place);
  char* const first = raw.allocate(1000);
  char* const second = raw.allocate(0);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % 256 == 0);
  CHECK(second != nullptr);
  CHECK(second != first);
  CHECK(f.rt.memory(f.device).blocks_live == 2);
  CHECK(f.rt.memory().blocks_live == 0);
  raw.deallocate(second, 0);
  const CloseResult result = it.close();
  REQUIRE(result.stragglers == 1);
  CHECK(result.report->places[0].place == place);
  raw.deallocate(first, 1000);
  CHECK(f.rt.memory(f.device).blocks_live == 0);
}

TEST_CASE("raw memory of a stream: the same stream has it again at once, another one does not") {
  DeviceRuntime f;
  Loop loop(f.rt);
  const Iteration it(loop);
  f.machine.hold(f.a);
  const RawMemory on_a = it.raw(f.a);
  char* const first = on_a.allocate(5000);
  std::atomic<bool> right{false};
  launch_host(f.rt, f.a, [=] { std::memset(first, 1, 5000); });
  launch_host(f.rt, f.a, [=, &right] { right = first[0] == 1 && first[4999] == 1; });
  on_a.deallocate(first, 5000);  // before any of that has run, as Thrust's par_nosync does
  char* const other = it.raw(f.b).allocate(5000);
  CHECK(other != first);
  char* const again = on_a.allocate(5000);
  CHECK(again == first);
  launch_host(f.rt, f.a, [=] { std::memset(again, 2, 5000); });
  f.machine.resume(f.a);
  CHECK(synchronise(f.rt, f.a, std::chrono::seconds(10)));
  CHECK(right);
  on_a.deallocate(again, 5000);
  it.raw(f.b).deallocate(other, 5000);
}

TEST_CASE("raw memory of a stream: wrong sizes, addresses and streams are refused") {
  DeviceRuntime f({.device_limit = 4_MiB});
  Loop loop(f.rt);
  const Iteration it(loop);
  const RawMemory raw = it.raw(f.a);
  char* const data = raw.allocate(100);
  CHECK_THROWS_AS(raw.deallocate(data, 99), std::invalid_argument);
  CHECK_THROWS_AS(raw.deallocate(data + 1, 100), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(raw.allocate(std::size_t{16} << 20)), OutOfMemory);
  Stream gone;
  {
    const DeviceStream stream(f.rt, f.device);
    gone = stream;
  }
  CHECK_THROWS_AS(static_cast<void>(it.raw(gone).allocate(1)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(it.raw({{DeviceKind::sim, 9}}).allocate(1)),
                  std::invalid_argument);
  it.raw(f.b).deallocate(data, 100);  // by another one of the runtime
  CHECK(f.rt.memory(f.device).blocks_live == 0);
}

TEST_CASE("raw memory of a stream: on a lost device it is refused, and can be given back") {
  DeviceRuntime f({.log = [](LogLevel, std::string_view) {}});
  Loop loop(f.rt);
  Iteration it(loop);
  const RawMemory raw = it.raw(f.a);
  char* const data = raw.allocate(100);
  f.machine.lose(f.device);
  CHECK_THROWS_AS(record(f.rt, f.a), DeviceError);
  CHECK_THROWS_AS(static_cast<void>(raw.allocate(100)), DeviceError);
  raw.deallocate(data, 100);
  CHECK(f.rt.stats().storages_live == 0);
}

TEST_CASE("raw memory of a stream: a step that repeats gets the same addresses") {
  DeviceRuntime f;
  Loop loop(f.rt, {.name = "sort", .warmup = 0});
  const StreamScope scope(f.rt, f.a);
  const char* last = nullptr;
  for (int i = 0; i < 8; ++i) {
    const char* address = nullptr;
    {
      const Iteration it(loop);
      const Tensor keys = zeros({100000}, DType::i32);
      const RawMemory raw = it.raw();
      char* const temporary = raw.allocate(400000);
      address = temporary;
      raw.deallocate(temporary, 400000);
    }
    loop.wait_plan();
    CHECK((i < 7 || address == last));
    last = address;
  }
  CHECK(loop.plans().size() >= 1);
  loop.finish();
}
