// SPDX-License-Identifier: Apache-2.0
// A program that asks a device's driver for everything that ebb ever does, and gives it all back.
// Used by the tests that have each of its calls fail in turn. One thread.
#pragma once

#include "device_fixture.h"

#include <ebb/runtime/graph.h>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <functional>

namespace ebb::test {

class DeviceScenario {
 public:
  // host_stream is of the device, and the host's.
  DeviceScenario(Runtime& rt, Device device, void* host_stream)
      : rt_(rt), device_(device), host_stream_(host_stream) {}

  // Throws what ebb throws. Wrong results fail the test, whatever else has failed.
  void run() {
    streams();
    {
      DeviceStream a(rt_, device_);
      DeviceStream b(rt_, device_);
      Loop loop(rt_, {.name = "scenario", .warmup = 0});
      for (int i = 0; i < 6; ++i) {
        iterate(loop, a, b, i);
        loop.wait_plan();
      }
      replay(loop, a);
      loop.finish();
      const double last = loop.logged().at(0).last;
      CHECK(last == 5);
    }
    rt_.empty_cache(device_);
  }

 private:
  Owner on(Stream stream) const { return rt_.owner().on(stream); }

  // What is thrown is the caller's to catch, not doctest's.
  static void check_sum(const Tensor& tensor, std::int64_t expected) {
    const std::int64_t got = sum(tensor);
    CHECK(got == expected);
  }

  // Made, borrowed, ordered, waited for.
  void streams() {
    const DeviceStream made(rt_, device_);
    const DeviceStream borrowed = borrow_stream(rt_, device_, host_stream_);
    const Tensor x = full(on(made), {1000}, 3, DType::i32);
    x.used_on(borrowed);
    const StreamPoint point = record(rt_, made);
    make_wait(rt_, borrowed, point);
    const bool synchronised = synchronise(rt_, borrowed, std::chrono::seconds(10));
    const bool done = is_done(rt_, point);
    CHECK(synchronised);
    CHECK(done);
    check_sum(x, 3000);
  }

  void iterate(Loop& loop, Stream a, Stream b, int number) {
    Iteration it(loop);
    const StreamScope scope(rt_, a);
    const Tensor host = counted(rt_.domain()->long_lived(), {20, 30}, number);
    const Tensor x = host.to(a);
    const Tensor y = zeros(it.owner().on(b), {30, 20}, DType::i32);
    y.copy_(x.transpose(0, 1));  // row by row, from another stream
    const Tensor z = empty(it.owner().on(b), {2000, 200}, DType::i32);
    z.fill_(number);
    launch(rt_, b, {x, y}, [&](void*) { launch_host(rt_, b, [] {}); });
    const Tensor pinned = empty_pinned(it, device_, {20, 30}, DType::i32);
    pinned.copy_(x);
    it.log("number", z.narrow(0, 0, 1).narrow(1, 0, 1));
    if (number % 2 == 0) {
      check_sum(y, 600 * 599 / 2 + 600 * number);
    }
  }

  // y = 2 x, as a graph.
  void replay(Loop& loop, Stream a) {
    const Tensor x = zeros(on(a), {1000}, DType::i32);
    const Tensor y = zeros(on(a), {1000}, DType::i32);
    GraphStep step(loop, a);
    const auto body = [&](Iteration&) {
      const Tensor doubled = empty({1000}, DType::i32);
      launch_host(rt_, a, [from = x.data<const std::int32_t>(), to = doubled.data<std::int32_t>()] {
        for (int i = 0; i < 1000; ++i) {
          to[i] = 2 * from[i];
        }
      });
      y.copy_(doubled);
    };
    for (int i = 0; i < 8; ++i) {
      x.fill_(i);
      step.run(body);
      check_sum(y, 2000 * i);
      loop.wait_plan();
      if (i == 5) {
        step.recapture();
      }
    }
    CHECK(step.stats().captures == 2);
  }

  Runtime& rt_;
  Device device_;
  void* host_stream_;
};

}  // namespace ebb::test
