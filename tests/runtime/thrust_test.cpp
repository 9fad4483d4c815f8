// SPDX-License-Identifier: Apache-2.0
// Thrust takes its temporary memory from an iteration, in the order of a stream. Needs a GPU; the
// allocator by itself is in tests/runtime/raw_stream_test.cpp. [rt.tensor]
#include "support/test_settings.h"
#include "thrust_calls.h"

#include <ebb/ebb.h>
#include <ebb/runtime/device_stream.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

using namespace ebb;

TEST_CASE("thrust: sorting and adding up on a stream, with an iteration's memory") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const Device device{DeviceKind::cuda, 0};
  Runtime rt({.devices = {cpu, device}});
  const DeviceStream stream(rt, device);
  void* const handle = stream_handle(rt, stream);
  Loop loop(rt, {.name = "sort"});
  for (int i = 0; i < 20; ++i) {
    Iteration it(loop);
    const Tensor host = empty(it, {100000}, DType::i32);
    auto* const values = reinterpret_cast<std::uint32_t*>(host.data<std::int32_t>());
    std::generate_n(values, host.elements(), [&] { return static_cast<std::uint32_t>(random()); });
    const Tensor keys = host.to(it.owner().on(stream));
    auto* const first = reinterpret_cast<std::uint32_t*>(keys.data<std::int32_t>());
    ebb::test::sort_on(it.raw(stream), handle, first, first + keys.elements());
    const std::uint64_t sum =
        ebb::test::sum_on(it.raw(stream), handle, first, first + keys.elements());
    std::sort(values, values + host.elements());
    CHECK(sum == std::accumulate(values, values + host.elements(), std::uint64_t{0}));
    const Tensor sorted = keys.to(it.owner().on(Stream{}));
    CHECK(std::equal(values, values + host.elements(),
                     reinterpret_cast<const std::uint32_t*>(sorted.data<const std::int32_t>())));
  }
  loop.finish();
  CHECK(rt.memory(device).blocks_live == 0);
}
