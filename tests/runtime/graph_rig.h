// SPDX-License-Identifier: Apache-2.0
// A step of a loop on a simulated device, to become a graph. For the tests of graphs.
#pragma once

#include "device_fixture.h"

#include <ebb/runtime/graph.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ebb::test {

inline constexpr std::int64_t count = 1000;

// What all elements of a tensor of f32 are, or -1; waits for a device.
inline float value_of(const Tensor& tensor) {
  const Tensor host = tensor.to(tensor.storage().domain().long_lived());
  const auto all = host.span<const float>();
  return std::all_of(all.begin(), all.end(), [&](float one) { return one == all[0]; }) ? all[0]
                                                                                       : -1;
}

// A step with temporaries: y = 2 x + rate, by way of two tensors, one of which is dropped early.
struct GraphRig : DeviceRuntime {
  void body() {
    addresses.clear();
    const Tensor doubled = make();
    run([from = x.data<const float>(), to = doubled.data<float>()] {
      std::transform(from, from + count, to, [](float value) { return 2 * value; });
    });
    {
      const Tensor early = make();
      run([to = early.data<float>()] { std::fill_n(to, count, 1e30f); });
    }
    const Tensor sum = make();
    run([from = doubled.data<const float>(), to = sum.data<float>(), rate = rate] {
      std::transform(from, from + count, to, [rate](float value) { return value + rate; });
    });
    y.copy_(sum);
  }
  Tensor make() {
    Tensor made = empty({count}, DType::f32);
    addresses.push_back(made.data<const float>());
    return made;
  }
  void run(std::function<void()> function) { launch_host(rt, a, std::move(function)); }

  // Runs it with every element of x being value, and returns what all of y are, or -1.
  float result(GraphStep& step, float value) {
    x.fill_(value);
    step.run([this](Iteration&) { body(); });
    return value_of(y);
  }
  // Until it is captured.
  void warm_up(GraphStep& step) {
    for (int i = 0; i < 10 && !step.is_captured(); ++i) {
      CHECK(result(step, 1) == 2 + rate);
      loop.wait_plan();
    }
    REQUIRE(step.is_captured());
  }

  Tensor x = zeros(on(a), {count}, DType::f32);
  Tensor y = zeros(on(a), {count}, DType::f32);
  float rate = 5;
  std::vector<const void*> addresses;
  Loop loop{rt, {.name = "graph", .warmup = 0}};
};

}  // namespace ebb::test
