// SPDX-License-Identifier: Apache-2.0
// Steps that become graphs: the same results, the same addresses, no call of the driver but the
// launch, and what a captured step may not do. [alloc.graph]
#include "device_fixture.h"

#include <ebb/alloc/error.h>
#include <ebb/runtime/graph.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DeviceRuntime;

namespace {

constexpr std::int64_t count = 1000;

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
    const Tensor host = y.to(rt.domain()->long_lived());
    const float first = host.data<const float>()[0];
    const auto all = host.span<const float>();
    return std::all_of(all.begin(), all.end(), [first](float one) { return one == first; }) ? first
                                                                                            : -1;
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

}  // namespace

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
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("graph_test.cpp"), std::invalid_argument);
  CHECK_FALSE(step.is_captured());
  keeps = false;
  kept.clear();
  CHECK(result(step, 2) == 4 + 5);  // it goes on
}

TEST_CASE_FIXTURE(GraphRig, "graph: what cannot be captured says so, and the next run works") {
  GraphStep step(loop, a);
  warm_up(step);
  const auto refused = [&](auto what) {
    step.recapture();
    bool thrown = false;
    try {
      step.run([&](Iteration& it) {
        body();
        what(it);
      });
    } catch (const std::invalid_argument& error) {
      thrown = std::string(error.what()).find("captured") != std::string::npos ||
               std::string(error.what()).find("graph") != std::string::npos;
      INFO(error.what());
    }
    CHECK(thrown);
    warm_up(step);
  };
  const Tensor host = zeros(rt, {count}, DType::f32);
  refused([&](Iteration& it) { static_cast<void>(it.keep(y)); });
  refused([&](Iteration&) { static_cast<void>(keep(y)); });
  refused([&](Iteration& it) { it.log("loss", y.narrow(0, 0, 1)); });
  refused([&](Iteration&) { static_cast<void>(y.narrow(0, 0, 1).item<float>()); });
  refused([&](Iteration&) { x.copy_(host); });
  CHECK(result(step, 4) == 8 + 5);
}

TEST_CASE_FIXTURE(GraphRig, "graph: an exception of the body leaves it, and the next run works") {
  GraphStep step(loop, a);
  warm_up(step);
  step.recapture();
  CHECK_THROWS_WITH(step.run([&](Iteration&) {
    body();
    throw std::runtime_error("of the body");
  }),
                    "of the body");
  CHECK_FALSE(step.is_captured());
  warm_up(step);
}

TEST_CASE_FIXTURE(GraphRig, "graph: an error of the driver leaves it, and the next run works") {
  GraphStep step(loop, a);
  warm_up(step);
  for (const SimCall call : {SimCall::begin_capture, SimCall::end_capture, SimCall::launch}) {
    step.recapture();
    machine.fail(call);
    CHECK_THROWS_AS(step.run([this](Iteration&) { body(); }), DeviceError);
    warm_up(step);
  }
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

TEST_CASE("graph: why a step is not captured is in its figures, and once in the log") {
  std::vector<std::string> lines;
  DeviceRuntime f({.log = [&](LogLevel, std::string_view text) { lines.emplace_back(text); }});
  Loop loop(f.rt, {.name = "eager", .warmup = 1000});
  GraphStep step(loop, f.a);
  CHECK(std::string(step.stats().why_eager).find("not run yet") != std::string::npos);
  std::vector<Tensor> kept;
  for (int i = 0; i < 150; ++i) {
    step.run([&](Iteration&) { kept.push_back(zeros({10})); });
  }
  CHECK(std::string(step.stats().why_eager).find("lives on") != std::string::npos);
  const auto is_told = [](const std::string& line) {
    return line.find("without becoming a graph") != std::string::npos &&
           line.find("graph_test.cpp") != std::string::npos;
  };
  CHECK(std::count_if(lines.begin(), lines.end(), is_told) == 1);
  CHECK_THROWS_WITH(step.run([](Iteration&) { throw std::runtime_error("mine"); }), "mine");
  CHECK(std::string(step.stats().why_eager).find("threw") != std::string::npos);
}

TEST_CASE_FIXTURE(GraphRig, "graph: what waits while a step is captured names what was called") {
  GraphStep step(loop, a);
  const auto check = [&](const char* expected, auto what) {
    warm_up(step);
    step.recapture();
    CHECK_THROWS_WITH_AS(step.run([&](Iteration& it) {
      body();
      what(it);
    }),
                         doctest::Contains(expected), std::invalid_argument);
  };
  const Tensor host = zeros(rt, {count}, DType::f32);
  check("[Tensor::item]", [&](Iteration&) { static_cast<void>(y.narrow(0, 0, 1).item<float>()); });
  check("[Tensor::to]", [&](Iteration&) { static_cast<void>(y.to(cpu)); });
  check("[Tensor::to]", [&](Iteration&) { static_cast<void>(host.to(a)); });
  check("[synchronise]",
        [&](Iteration&) { static_cast<void>(synchronise(rt, a, std::chrono::seconds(1))); });
  check("[is_done]", [&](Iteration&) { static_cast<void>(is_done(rt, record(rt, a))); });
  check("[Runtime::empty_cache]", [&](Iteration&) { static_cast<void>(rt.empty_cache(device)); });
  check("no pinned memory",
        [&](Iteration& it) { static_cast<void>(empty_pinned(it, device, {count})); });
  CHECK(result(step, 4) == 8 + 5);
}

TEST_CASE_FIXTURE(GraphRig, "graph: the default stream is refused") {
  CHECK_THROWS_WITH_AS(GraphStep(loop, Stream{device}),
                       "[GraphStep] the default stream cannot be captured: make a DeviceStream",
                       std::invalid_argument);
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

TEST_CASE_FIXTURE(GraphRig, "graph: a captured step may have iterations within it") {
  GraphStep step(loop, a);
  Loop inner(rt, {.name = "within", .warmup = 0});
  const auto run = [&](float value) {
    x.fill_(value);
    y.fill_(0);
    step.run([&](Iteration&) {
      const Tensor own = empty({count}, DType::f32);
      own.copy_(x);
      for (int part = 0; part < 4; ++part) {
        Iteration it(inner);
        const Tensor made = empty({count}, DType::f32);
        made.copy_(own);
        launch_host(rt, a, [from = made.data<const float>(), to = y.data<float>()] {
          std::transform(from, from + count, to, to, std::plus<>());
        });
      }
    });
    CHECK(y.to(rt.domain()->long_lived()).data<const float>()[count - 1] == 4 * value);
  };
  for (int i = 0; i < 20 && !step.is_captured(); ++i) {
    run(static_cast<float>(i));
    loop.wait_plan();
    inner.wait_plan();
  }
  REQUIRE(step.is_captured());
  run(50);
}

TEST_CASE_FIXTURE(GraphRig, "graph: while another thread captures, a step is run instead") {
  GraphStep step(loop, a);
  warm_up(step);
  step.recapture();
  Loop second(rt, {.name = "second", .warmup = 0});
  step.run([&](Iteration&) {
    body();
    std::thread([&] {
      GraphStep mine(second, b);
      for (int i = 0; i < 10; ++i) {
        mine.run([](Iteration&) { empty({count}, DType::f32).fill_(1); });
        second.wait_plan();
        CHECK(synchronise(rt, b, std::chrono::seconds(10)));
      }
      CHECK(mine.stats().eager == 10);
    }).join();
  });
  CHECK(step.is_captured());
}

TEST_CASE_FIXTURE(GraphRig, "graph: a step that runs within a captured one is part of it") {
  Loop inner(rt, {.name = "inner", .warmup = 0});
  GraphStep step(loop, a);
  GraphStep part(inner, a);
  for (int i = 0; i < 10 && !step.is_captured(); ++i) {
    x.fill_(i);
    step.run([&](Iteration&) {
      make().fill_(1);
      part.run([this](Iteration&) { body(); });
    });
    loop.wait_plan();
    inner.wait_plan();
    CHECK(y.narrow(0, 0, 1).item<float>() == 2.0f * static_cast<float>(i) + 5);
  }
  REQUIRE(step.is_captured());
  CHECK(result(step, 7) == 2 * 7 + 5);
}

TEST_CASE("graph: iterations within a captured step wait for no device, and finish() says why") {
  DeviceRuntime f({.device_deadline = std::chrono::seconds(3)});
  Loop loop(f.rt, {.warmup = 0});
  Loop inner(f.rt);
  GraphStep step(loop, f.a);
  bool finishes = false;
  const auto run = [&] {
    step.run([&](Iteration&) {
      empty({count}, DType::f32).fill_(1);
      for (int n = 0; n < 5; ++n) {
        const Iteration it(inner);
        empty({count}, DType::f32).fill_(2);
      }
      if (finishes) {
        inner.finish();
      }
    });
    loop.wait_plan();
    inner.wait_plan();
  };
  for (int i = 0; i < 10 && !step.is_captured(); ++i) {
    run();
  }
  REQUIRE(step.is_captured());
  inner.finish();
  step.recapture();
  finishes = true;
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("captured"), std::invalid_argument);
}

TEST_CASE_FIXTURE(GraphRig, "graph: the default stream, which cannot be captured, is refused") {
  CHECK_THROWS_WITH_AS(GraphStep(loop, Stream{device}), doctest::Contains("DeviceStream"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(GraphStep(loop, Stream{}), doctest::Contains("CPU"), std::invalid_argument);
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

// All of them would be the driver's errors, and spoil the graph, if they asked for the stream.
TEST_CASE_FIXTURE(GraphRig, "graph: what other threads do on the device leaves a capture alone") {
  GraphStep step(loop, a);
  warm_up(step);
  const auto meanwhile = [&](const std::function<void()>& other) {
    step.recapture();
    x.fill_(3);
    step.run([&](Iteration&) {
      make_wait(rt, b, a);  // which so is captured as well
      body();
      std::jthread([&] { CHECK_NOTHROW(other()); }).join();
      make_wait(rt, a, b);
    });
    CHECK(step.is_captured());
    CHECK(y.narrow(0, 0, 1).item<float>() == 2 * 3 + 5);
  };
  const DeviceStream own(rt, device);
  meanwhile([&] { static_cast<void>(is_done(rt, StreamPoint{a, 1})); });
  meanwhile([&] { CHECK(synchronise(rt, a, std::chrono::seconds(10))); });
  meanwhile([&] { static_cast<void>(rt.empty_cache(device)); });
  meanwhile([&] { make_wait(rt, own, a); });
  meanwhile([&] {
    Loop further(rt, {.name = "further"});
    for (int i = 0; i < 5; ++i) {
      const Iteration it(further);
      zeros(it.owner().on(own), {count}, DType::f32).used_on(a);
    }
  });
  meanwhile([&] {
    Loop further(rt, {.name = "further"});
    GraphStep second(further, own);
    for (int i = 0; i < 5; ++i) {
      second.run([](Iteration&) { empty({count}, DType::f32).fill_(1); });
      further.wait_plan();
    }
    CHECK(second.stats().eager == 5);
  });
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
