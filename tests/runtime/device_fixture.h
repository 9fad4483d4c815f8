// SPDX-License-Identifier: Apache-2.0
// A runtime with a simulated device and two streams. For the tests of runtime.
#pragma once

#include "support/executor_choice.h"

#include <ebb/alloc/sim.h>
#include <ebb/ebb.h>
#include <ebb/runtime/device_stream.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

namespace ebb::test {

using namespace ebb::literals;

struct DeviceRuntime {
  explicit DeviceRuntime(RuntimeOptions options = {})
      : device(machine.device()),
        rt(with_device(std::move(options))),
        a(rt, device),
        b(rt, device) {}
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;
  DeviceRuntime(DeviceRuntime&&) = delete;
  DeviceRuntime& operator=(DeviceRuntime&&) = delete;
  ~DeviceRuntime() { CHECK(machine.violations().empty()); }

  Owner on(Stream stream) const { return rt.owner().on(stream); }

  SimMachine machine;
  Device device;
  Runtime rt;
  DeviceStream a;
  DeviceStream b;

 private:
  RuntimeOptions with_device(RuntimeOptions options) const {
    options.executor = executor_choice();
    options.devices = {cpu, device};
    options.backend = machine.backend();
    return options;
  }
};

// Elements that differ from each other and from those of other seeds.
inline Tensor counted(Owner owner, const Shape& shape, std::int32_t seed = 0) {
  Tensor tensor = empty(owner, shape, DType::i32);
  std::int32_t next = seed;
  for (std::int32_t& element : tensor.span<std::int32_t>()) {
    element = next++;
  }
  return tensor;
}

// The sum of i32 elements; waits for a device.
inline std::int64_t sum(const Tensor& tensor) {
  const Tensor host =
      tensor.device() == cpu ? tensor : tensor.to(tensor.storage().domain().long_lived());
  std::int64_t total = 0;
  for (const std::int32_t element : host.span<const std::int32_t>()) {
    total += element;
  }
  return total;
}

}  // namespace ebb::test
