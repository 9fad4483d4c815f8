// SPDX-License-Identifier: Apache-2.0
// How much memory of a device there is, who has it, and what happens when it is short.
// notes/allocators.md section 4, items 1, 2, 6, 14. [alloc.cuda]
#include "device_fixture.h"
#include "support/later.h"

#include <ebb/alloc/error.h>
#include <ebb/runtime/testing.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DeviceRuntime;

namespace {

constexpr std::int64_t elements_of_mib = 1 << 18;

// A device of 32 MiB, and tensors of whole MiBs on it.
struct SmallDevice {
  explicit SmallDevice(RuntimeOptions options = {}) : rt(with_device(std::move(options))) {}

  Tensor make(std::int64_t mebibytes, Stream stream, Place at = Place::here()) {
    return empty(rt.owner().on(stream), {mebibytes * elements_of_mib}, DType::f32, at);
  }
  RuntimeOptions with_device(RuntimeOptions options) const {
    options.devices = {cpu, machine.device()};
    options.backend = machine.backend();
    return options;
  }

  SimMachine machine{{.memory = 32_MiB}};
  Runtime rt;
  DeviceStream a{rt, machine.device()};
  DeviceStream b{rt, machine.device()};
};

}  // namespace

TEST_CASE("device memory: the figures tell what is live, cached and awaiting") {
  SmallDevice f;
  const Device device = f.machine.device();
  std::optional<Tensor> tensor = f.make(4, f.a);
  CHECK(f.rt.cache_info(device).memory.live == 4_MiB);
  CHECK(f.rt.cache_info(device).memory.reserved == 4_MiB);
  f.machine.hold(f.b);
  launch_host(f.rt, f.b, [] {});
  tensor->used_on(f.b);
  tensor.reset();
  CHECK(f.rt.cache_info(device).memory.awaiting == 4_MiB);
  f.machine.resume(f.b);
  CHECK(f.rt.empty_cache(device) == 4_MiB);
  const CacheInfo info = f.rt.cache_info(device);
  CHECK(info.memory.awaiting == Bytes{});
  CHECK(info.memory.live == Bytes{});
  CHECK(info.cached() == Bytes{});
  CHECK(f.machine.memory(device).committed == Bytes{});
  CHECK_THROWS_AS(static_cast<void>(f.rt.cache_info({DeviceKind::sim, 3})), std::invalid_argument);
}

TEST_CASE("device memory: emptying the cache of a device that is stuck is an error in time") {
  SmallDevice f({.device_deadline = Milliseconds(500)});
  static_cast<void>(f.make(1, f.a));
  f.machine.hold(f.a);
  launch_host(f.rt, f.a, [] {});
  CHECK_THROWS_WITH_AS(f.rt.empty_cache(f.machine.device()), doctest::Contains("was not done"),
                       DeviceError);
  f.machine.resume(f.a);
  CHECK(f.rt.empty_cache(f.machine.device()) == 2_MiB);
}

TEST_CASE("device memory: a fraction of the device, and a limit in bytes") {
  for (const bool by_fraction : {true, false}) {
    RuntimeOptions options;
    options.device_fraction = by_fraction ? 0.5 : 1;
    options.device_limit = by_fraction ? Bytes{} : 16_MiB;
    SmallDevice f(options);
    CHECK(f.rt.cache_info(f.machine.device()).limit == 16_MiB);
    const Tensor most = f.make(15, f.a);
    CHECK_THROWS_AS(f.make(4, f.a), OutOfMemory);
    CHECK(f.machine.memory(f.machine.device()).committed <= 16_MiB);
  }
}

TEST_CASE("device memory: a refusal names sizes, the pool and the lines that hold most") {
  SmallDevice f;
  std::vector<Tensor> held;
  for (int i = 0; i < 7; ++i) {
    held.push_back(f.make(1 + i % 2, f.a, {"train.cpp", 10u + static_cast<std::uint32_t>(i)}));
  }
  held.push_back(f.make(20, f.a, {"train.cpp", 99}));
  held.back().named("activations");
  try {
    static_cast<void>(f.make(8, f.b));
    FAIL("no error");
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK(error.info().asked == 8_MiB);
    CHECK(error.info().live == 30_MiB);
    CHECK(text.find("sim:0") != std::string::npos);
    CHECK(text.find("train.cpp:99") != std::string::npos);
    CHECK(text.find("activations") != std::string::npos);
  }
  held.clear();
  CHECK(f.make(28, f.b).defined());  // it is all there again
}

TEST_CASE("device memory: what another stream is not done with is waited for before a refusal") {
  SmallDevice f;
  {
    const Tensor all = f.make(30, f.a);
    f.machine.hold(f.a);
    launch_host(f.rt, f.a, [] {});
  }
  const ebb::test::Later later([&f] { f.machine.resume(f.a); });
  CHECK(f.make(30, f.b).defined());
}

TEST_CASE("device memory: the host is asked before a request fails, and again while it helps") {
  std::vector<Tensor> cache;
  std::vector<Bytes> asked;
  SmallDevice f({.on_out_of_memory = [&](Bytes bytes, Device device) {
    CHECK(device.kind == DeviceKind::sim);
    asked.push_back(bytes);
    if (cache.empty()) {
      return false;
    }
    cache.pop_back();
    return true;
  }});
  for (int i = 0; i < 14; ++i) {
    cache.push_back(f.make(2, f.a));
  }
  const Tensor large = f.make(10, f.a);
  CHECK(asked.size() == 3);
  CHECK(asked.front() == 10_MiB);
  CHECK(cache.size() == 11);
  CHECK_THROWS_AS(f.make(40, f.a), OutOfMemory);
  CHECK(cache.empty());
}

TEST_CASE("device memory: the host is asked for the CPU's memory too, not for its own requests") {
  int depth = 0;
  int asked = 0;
  std::optional<Runtime> rt;
  rt.emplace(RuntimeOptions{.memory_limit = 8_MiB, .on_out_of_memory = [&](Bytes, Device device) {
                              CHECK(device == cpu);
                              CHECK(++depth == 1);
                              CHECK_THROWS_AS(empty(*rt, {4 * elements_of_mib}, DType::f32),
                                              OutOfMemory);
                              --depth;
                              return ++asked < 3;
                            }});
  const Tensor most = empty(*rt, {6 * elements_of_mib}, DType::f32);
  CHECK_THROWS_AS(empty(*rt, {4 * elements_of_mib}, DType::f32), OutOfMemory);
  CHECK(asked == 3);
}

TEST_CASE("device memory: what awaits streams is bounded by the iterations in flight") {
  // Item 6: the producer runs far ahead of the stream that uses what it makes.
  DeviceRuntime f;
  Loop loop(f.rt, {.name = "ahead", .warmup = 0, .in_flight = 2, .plans = false});
  f.machine.set_delay(f.b, std::chrono::microseconds(300));
  const StreamScope scope(f.rt, f.a);
  Bytes most;
  for (int i = 0; i < 60; ++i) {
    Iteration it(loop);
    for (int n = 0; n < 4; ++n) {
      const Tensor tensor = empty({elements_of_mib / 4}, DType::f32);
      launch(f.rt, f.b, {tensor}, [&](void*) { launch_host(f.rt, f.b, [] {}); });
    }
    most = std::max(most, f.rt.cache_info(f.device).memory.awaiting);
  }
  loop.finish();
  CHECK(most <= 3_MiB);  // three iterations' worth
  CHECK(f.rt.cache_info(f.device).memory.reserved <= 6_MiB);
}
