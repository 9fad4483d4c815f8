// SPDX-License-Identifier: Apache-2.0
// Steps that become graphs: the same results, the same addresses, no call of the driver but the
// launch. [alloc.graph]
#include "graph_rig.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace ebb;
using ebb::test::count;
using ebb::test::GraphRig;

TEST_CASE_FIXTURE(GraphRig, "graph: a step that repeats is captured, and gives the same results") {
  GraphStep step(loop, a);
  warm_up(step);
  CHECK(step.stats().captures == 1);
  const GraphStats before = step.stats();
  const auto launched = machine.counts().of(SimCall::launch);
  const auto calls = rt.memory(device).source_calls;
  for (int i = 0; i < 1000; ++i) {
    x.fill_(static_cast<double>(i));
    step.run([](Iteration&) { FAIL("the body is not called any more"); });
  }
  CHECK(y.to(rt.domain()->long_lived()).data<const float>()[17] == 2.0f * 999 + 5);
  CHECK(step.stats().launches - before.launches == 1000);
  CHECK(machine.counts().of(SimCall::launch) - launched == 1000);
  CHECK(rt.memory(device).source_calls == calls);
  loop.finish();
}

TEST_CASE_FIXTURE(GraphRig, "graph: what others make is never where the graph works") {
  GraphStep step(loop, a);
  warm_up(step);
  const std::vector<const void*> held = addresses;
  Loop other(rt, {.name = "other"});
  const StreamScope scope(rt, a);
  for (int i = 0; i < 20; ++i) {
    Iteration it(other);
    for (int n = 0; n < 5; ++n) {
      const Tensor made = empty({count}, DType::f32);
      made.fill_(7);
      CHECK(std::count(held.begin(), held.end(), made.data<const float>()) == 0);
    }
    CHECK(result(step, static_cast<float>(i)) == 2 * static_cast<float>(i) + 5);
  }
}

TEST_CASE_FIXTURE(GraphRig, "graph: it is changed in place, on the same addresses") {
  GraphStep step(loop, a);
  warm_up(step);
  const std::vector<const void*> before = addresses;
  rate = 9;
  CHECK(result(step, 1) == 2 + 5);  // a constant of the graph
  step.recapture();
  CHECK_FALSE(step.is_captured());
  CHECK(result(step, 1) == 2 + 9);
  CHECK(step.is_captured());
  CHECK(step.stats().captures == 2);
  CHECK(step.stats().updates == 1);
  CHECK(addresses == before);
  CHECK(result(step, 3) == 6 + 9);
}

TEST_CASE_FIXTURE(GraphRig, "graph: its memory is free again after it") {
  {
    GraphStep step(loop, a);
    warm_up(step);
    CHECK(rt.memory(device).live > Bytes{3 * count * 4});
  }
  CHECK(rt.memory(device).live == rt.memory(device).live);
  {
    const StreamScope scope(rt, a);
    Iteration it(loop);
    static_cast<void>(make());
  }
  CHECK(rt.memory(device).live <= Bytes{2 * 4096});
  CHECK(machine.counts().graphs == 0);
}

TEST_CASE_FIXTURE(GraphRig,
                  "graph: a tensor that outlives the captured step is an error that says where") {
  GraphStep step(loop, a);
  std::vector<Tensor> kept;
  bool keeps = false;
  const auto run = [&] {
    step.run([&](Iteration&) {
      body();
      const Tensor last = make();
      if (keeps) {
        kept.push_back(last);
      }
    });
    loop.wait_plan();
  };
  for (int i = 0; i < 5 && step.stats().captures == 0; ++i) {
    run();
  }
  REQUIRE(step.is_captured());
  step.recapture();
  keeps = true;
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("graph_rig.h"), std::invalid_argument);
  CHECK_FALSE(step.is_captured());
  keeps = false;
  kept.clear();
  CHECK(result(step, 2) == 4 + 5);  // it goes on
}

TEST_CASE_FIXTURE(GraphRig,
                  "graph: a step that changes makes an error or its result, never a wrong one") {
  GraphStep step(loop, a);
  warm_up(step);
  step.recapture();
  try {
    step.run([&](Iteration&) {
      const Tensor more = empty({50 * count}, DType::f32);  // needs memory that is not mapped
      body();
    });
  } catch (const std::exception& error) {
    CHECK(std::string(error.what()).find("capture") != std::string::npos);
  }
  warm_up(step);
}

TEST_CASE_FIXTURE(GraphRig, "graph: a host function's error comes with the next run") {
  GraphStep step(loop, a);
  bool throws = false;
  for (int i = 0; i < 10 && !step.is_captured(); ++i) {
    step.run([&](Iteration&) {
      body();
      run([&throws] {
        if (throws) {
          throw std::runtime_error("on the device");
        }
      });
    });
    loop.wait_plan();
  }
  REQUIRE(step.is_captured());
  REQUIRE(synchronise(rt, a, std::chrono::seconds(10)));  // those of earlier runs have looked
  throws = true;
  step.run([](Iteration&) {});
  REQUIRE(synchronise(rt, a, std::chrono::seconds(10)));
  CHECK_THROWS_WITH(step.run([](Iteration&) {}), "on the device");
}

TEST_CASE_FIXTURE(GraphRig, "graph: a loop without plans captures nothing") {
  Loop plain(rt, {.name = "plain", .plans = false});
  GraphStep step(plain, a);
  for (int i = 0; i < 10; ++i) {
    CHECK(result(step, 1) == 2 + 5);
  }
  CHECK(step.stats().eager == 10);
  CHECK_FALSE(step.is_captured());
  CHECK(std::string(step.stats().why_eager).find("no plans") != std::string::npos);
}

TEST_CASE_FIXTURE(GraphRig, "graph: a step that makes nothing is captured, with plans or without") {
  for (const bool plans : {true, false}) {
    Loop other(rt, {.name = "nothing", .plans = plans});
    GraphStep step(other, a);
    for (int i = 0; i < 10; ++i) {
      x.fill_(i);
      step.run([&](Iteration&) { y.copy_(x); });
      CHECK(y.narrow(0, 3, 1).item<int>() == i);
    }
    CHECK(step.stats().eager == 1);
    CHECK(step.stats().captures == 1);
    CHECK(step.stats().launches == 8);
  }
}

TEST_CASE_FIXTURE(GraphRig, "graph: what a step that made nothing makes later is its own") {
  GraphStep step(loop, a);
  bool makes = false;
  const void* made_at = nullptr;
  const auto run = [&](float value) {
    x.fill_(value);
    step.run([&](Iteration&) {
      if (makes) {
        const Tensor middle = make();
        made_at = middle.data<const float>();
        middle.copy_(x);
        y.copy_(middle);
      }
    });
  };
  static_cast<void>(zeros(on(a), {10 * count}, DType::f32));  // pages to make it in
  run(1);
  run(2);
  REQUIRE(step.is_captured());
  step.recapture();
  makes = true;
  run(3);
  REQUIRE(step.is_captured());
  const Tensor others = empty(on(a), {count}, DType::f32);
  CHECK(others.data<const float>() != made_at);
  run(4);
  CHECK(y.narrow(0, 3, 1).item<int>() == 4);
}

TEST_CASE_FIXTURE(GraphRig, "graph: its work on a further stream is in that stream's order") {
  GraphStep step(loop, a);
  const Tensor w = zeros(on(b), {count}, DType::f32);
  const auto run = [&](int value) {
    w.fill_(value);
    step.run([&](Iteration&) {
      make_wait(rt, b, a);
      Tensor made;
      {
        const StreamScope scope(rt, b);
        made = empty({count}, DType::f32);
        launch_host(rt, b, [from = w.data<const float>(), to = made.data<float>()] {
          std::copy_n(from, count, to);
        });
      }
      y.copy_(made);
    });
    const float* const first = y.data<const float>();
    w.fill_(-1);
    REQUIRE(synchronise(rt, a, std::chrono::seconds(10)));
    CHECK(*first == static_cast<float>(value));
  };
  for (int i = 0; i < 10 && !step.is_captured(); ++i) {
    run(i);
    loop.wait_plan();
  }
  REQUIRE(step.is_captured());
  machine.set_delay(b, std::chrono::milliseconds(5));  // later than the graph needs it
  run(11);
  machine.set_delay(b, std::chrono::microseconds(0));
  machine.set_delay(a, std::chrono::milliseconds(5));  // the graph is later
  run(12);
  machine.set_delay(a, std::chrono::microseconds(0));
}

TEST_CASE_FIXTURE(GraphRig, "graph: a host function's error is told by a run that captures, too") {
  GraphStep step(loop, a);
  bool throws = false;
  const auto step_once = [&] {
    step.run([&](Iteration&) {
      body();
      run([&throws] {
        if (throws) {
          throw std::runtime_error("on the device");
        }
      });
    });
  };
  for (int i = 0; i < 10 && !step.is_captured(); ++i) {
    step_once();
    loop.wait_plan();
  }
  REQUIRE(step.is_captured());
  REQUIRE(synchronise(rt, a, std::chrono::seconds(10)));
  throws = true;
  step_once();
  REQUIRE(synchronise(rt, a, std::chrono::seconds(10)));
  throws = false;
  step.recapture();
  CHECK_THROWS_WITH(step_once(), "on the device");
  step_once();
  CHECK(step.is_captured());
  REQUIRE(synchronise(rt, a, std::chrono::seconds(10)));  // those that are queued look at throws
}

TEST_CASE("graph: it may be destroyed after its runtime, with launches that are not done") {
  SimMachine machine;
  auto rt = std::make_unique<Runtime>(RuntimeOptions{.executor = ebb::test::executor_choice(),
                                                     .devices = {cpu, machine.device()},
                                                     .backend = machine.backend()});
  auto loop = std::make_unique<Loop>(*rt);
  const DeviceStream stream(*rt, machine.device());
  auto step = std::make_unique<GraphStep>(*loop, stream);
  for (int i = 0; i < 10 && !step->is_captured(); ++i) {
    step->run([](Iteration&) { empty({count}, DType::f32).fill_(1); });
    loop->wait_plan();
  }
  REQUIRE(step->is_captured());
  REQUIRE(
      synchronise(*rt, stream, std::chrono::seconds(10)));  // an open waits for no more than two
  machine.hold(stream);
  step->run([](Iteration&) {});
  loop.reset();
  machine.resume(stream);
  rt.reset();
  step.reset();
  CHECK(machine.violations().empty());
}

TEST_CASE("graph: what its functions hold is theirs until launches that are queued have run") {
  SimMachine machine;
  auto rt = std::make_unique<Runtime>(RuntimeOptions{.executor = ebb::test::executor_choice(),
                                                     .devices = {cpu, machine.device()},
                                                     .backend = machine.backend()});
  const std::weak_ptr<Domain> lifetimes = rt->domain();
  auto loop = std::make_unique<Loop>(*rt);
  std::optional<DeviceStream> stream(std::in_place, *rt, machine.device());
  auto step = std::make_unique<GraphStep>(*loop, *stream);
  std::atomic<int> calls{0};
  {
    const Tensor held = full(rt->owner().on(*stream), {count}, 4);
    for (int i = 0; i < 10 && !step->is_captured(); ++i) {
      step->run([&](Iteration&) {
        launch_host(*rt, *stream, [&calls, held] {
          calls += held.data<const float>()[count - 1] == 4 ? 1 : 1000;
        });
        empty({count}, DType::f32).fill_(1);
      });
      loop->wait_plan();
    }
  }
  REQUIRE(step->is_captured());
  REQUIRE(synchronise(*rt, *stream, std::chrono::seconds(10)));
  const int before = calls;
  machine.set_delay(*stream, std::chrono::milliseconds(5));
  step->run([](Iteration&) {});
  step->run([](Iteration&) {});
  loop.reset();
  rt.reset();
  step.reset();
  CHECK(calls - before == 2);
  stream.reset();
  REQUIRE(machine.drain());
  CHECK(lifetimes.expired());
  CHECK(machine.violations().empty());
}
