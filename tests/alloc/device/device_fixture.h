// SPDX-License-Identifier: Apache-2.0
// A heap on a simulated device, and what its tests ask. Used by the tests of device memory.
#pragma once

#include <ebb/alloc/device_context.h>
#include <ebb/alloc/heap.h>
#include <ebb/alloc/pool.h>
#include <ebb/alloc/sim.h>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <utility>

namespace ebb::test {

inline constexpr Bytes kib(std::size_t n) {
  return Bytes{n << 10};
}
inline constexpr Bytes mib(std::size_t n) {
  return Bytes{n << 20};
}

inline std::chrono::steady_clock::time_point soon(
    std::chrono::milliseconds wait = std::chrono::seconds(20)) {
  return std::chrono::steady_clock::now() + wait;
}

struct DeviceRig {
  explicit DeviceRig(SimOptions options = {.memory = mib(64)}, PoolOptions pool_options = {})
      : machine(options),
        context(std::make_shared<DeviceContext>(machine.device(), machine.backend())),
        pool(context->pages(), with_order(std::move(pool_options))),
        heap(pool.acquire()) {}
  DeviceRig(const DeviceRig&) = delete;
  DeviceRig& operator=(const DeviceRig&) = delete;
  DeviceRig(DeviceRig&&) = delete;
  DeviceRig& operator=(DeviceRig&&) = delete;
  ~DeviceRig() {
    Pool::park(heap);
    machine.resume_all();
    CHECK(machine.violations().empty());
  }

  PoolOptions with_order(PoolOptions options) const {
    options.name = "sim memory";
    options.order = context.get();
    options.keep_alive = context;
    return options;
  }
  Block take(Bytes bytes, Stream stream) const {
    return heap.allocate(bytes, default_align_cuda, stream);
  }
  // Queues something on stream that is not done before it is resumed.
  void work(Stream stream) {
    machine.hold(stream);
    context->call([](void*) {}, nullptr, stream);
  }

  SimMachine machine;
  std::shared_ptr<DeviceContext> context;
  Pool pool;
  Heap& heap;
};

}  // namespace ebb::test
