// SPDX-License-Identifier: Apache-2.0
// Captured steps that have to do with several streams of their device: the results are those of the
// body, whatever the streams are slow at. [alloc.graph] [rt.stream]
#include "graph_rig.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

using namespace ebb;
using ebb::test::count;
using ebb::test::DeviceRuntime;
using ebb::test::value_of;

namespace {

constexpr std::chrono::milliseconds slow{2};
constexpr std::chrono::seconds patience{10};

struct StreamsRig : DeviceRuntime {
  // Twice before it is captured, and often enough to see what each launch does.
  void repeat(GraphStep& step, const std::function<void(Iteration&)>& body,
              const std::function<void(int)>& before, const std::function<void(int)>& after) {
    for (int i = 0; i < 12; ++i) {
      before(i);
      step.run(body);
      after(i);
      loop.wait_plan();
    }
    CHECK(step.stats().captures == 1);
    CHECK(step.stats().launches > 3);
  }
  Tensor make(Stream stream) const { return zeros(on(stream), {count}, DType::f32); }

  Tensor x = make(a);
  Tensor y = make(a);
  Tensor on_b = make(b);
  Loop loop{rt, {.name = "graph", .warmup = 0}};
};

}  // namespace

TEST_CASE_FIXTURE(StreamsRig, "graph streams: a launch comes after what another stream was given") {
  GraphStep step(loop, a);
  const auto body = [&](Iteration&) {
    const Tensor copied = empty({count}, DType::f32);
    copied.copy_(on_b);
    launch(rt, a, {copied, on_b, y}, [&](void*) {
      launch_host(rt, a,
                  [from = copied.data<const float>(), also = on_b.data<const float>(),
                   to = y.data<float>()] {
                    std::transform(from, from + count, also, to,
                                   [](float p, float q) { return p + q; });
                  });
    });
  };
  machine.set_delay(b, slow);
  repeat(
      step, body, [&](int i) { on_b.fill_(i); }, [&](int i) { CHECK(value_of(y) == 2 * i); });
}

TEST_CASE_FIXTURE(StreamsRig, "graph streams: what another stream is given comes after a launch") {
  GraphStep step(loop, a);
  const auto body = [&](Iteration&) { y.copy_(on_b); };
  machine.set_delay(a, slow);
  repeat(
      step, body, [&](int i) { on_b.fill_(i); },
      [&](int i) {
        on_b.fill_(99);
        CHECK(value_of(y) == i);
      });
}

TEST_CASE_FIXTURE(StreamsRig, "graph streams: what the body queues elsewhere is in the graph") {
  GraphStep step(loop, a);
  const auto body = [&](Iteration&) {
    const Tensor copied = empty({count}, DType::f32);
    copied.copy_(x);
    on_b.copy_(copied);  // on b
  };
  machine.set_delay(a, slow);
  repeat(
      step, body, [&](int i) { x.fill_(i); }, [&](int i) { CHECK(value_of(on_b) == i); });
}

TEST_CASE_FIXTURE(StreamsRig, "graph streams: a stream that the body leaves unjoined is joined") {
  GraphStep step(loop, a);
  std::atomic<int> calls{0};
  const auto body = [&](Iteration&) {
    make_wait(rt, b, a);
    launch_host(rt, b, [&] { ++calls; });
  };
  repeat(
      step, body, [](int) {},
      [&](int i) {
        REQUIRE(synchronise(rt, b, patience));  // which comes after the launch, too
        CHECK(calls == i + 1);
      });
}

TEST_CASE_FIXTURE(StreamsRig, "graph streams: points from before the capture are no part of it") {
  GraphStep step(loop, a);
  StreamPoint own{};
  StreamPoint other{};
  const auto body = [&](Iteration&) {
    make_wait(rt, b, own);
    make_wait(rt, a, other);
    y.copy_(x);
    make_wait(rt, b, other);
  };
  repeat(
      step, body,
      [&](int i) {
        x.fill_(i);
        own = record(rt, a);
        other = record(rt, b);
      },
      [&](int i) { CHECK(value_of(y) == i); });
}

TEST_CASE_FIXTURE(StreamsRig,
                  "graph streams: a stream may end before the graph that waits for it") {
  GraphStep step(loop, a);
  std::optional<DeviceStream> c(std::in_place, rt, device);
  const Tensor on_c = full(on(*c), {count}, 3, DType::f32);
  const auto body = [&](Iteration&) { y.copy_(on_c); };
  repeat(
      step, body, [&](int i) { i == 6 ? c.reset() : void(); },
      [&](int) {
        CHECK(value_of(y) == 3);
        y.fill_(0);
      });
}

TEST_CASE_FIXTURE(StreamsRig,
                  "graph streams: it is captured anew, in place, with further streams") {
  GraphStep step(loop, a);
  bool uses_b = false;
  const auto run = [&](float value) {
    on_b.fill_(value);
    step.run([&](Iteration&) { y.copy_(uses_b ? on_b : x); });
    return value_of(y);
  };
  for (int i = 0; i < 4; ++i) {
    CHECK(run(1) == 0);
  }
  REQUIRE(step.is_captured());
  step.recapture();
  uses_b = true;
  CHECK(run(2) == 2);
  CHECK(step.stats().updates == 1);
  machine.set_delay(b, slow);
  for (float i = 3; i < 9; ++i) {
    CHECK(run(i) == i);
  }
}
