// SPDX-License-Identifier: Apache-2.0
// While a step is captured: what it may not do, what others may, and what becomes of a failure.
// [alloc.graph]
#include "graph_rig.h"

#include <ebb/alloc/error.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::count;
using ebb::test::DeviceRuntime;
using ebb::test::GraphRig;

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
           line.find("graph_capture_test.cpp") != std::string::npos;
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
  CHECK_THROWS_WITH_AS(GraphStep(loop, Stream{device}),
                       "[GraphStep] the default stream cannot be captured: make a DeviceStream",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(GraphStep(loop, Stream{}), doctest::Contains("CPU"), std::invalid_argument);
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
