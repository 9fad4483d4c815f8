// SPDX-License-Identifier: Apache-2.0
// Simulated drivers that fail: once, for good, or because the process ends. [alloc.sim]
#include "sim_fixture.h"
#include "support/child.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

using ebb::Bytes;
using ebb::Event;
using ebb::GraphExec;
using ebb::Range;
using ebb::SimCall;
using ebb::Stream;
using ebb::test::code_of;
using ebb::test::sim_page;
using ebb::test::SimFixture;

TEST_CASE(
    "simulated faults: each call that can throw does so once, after those that were to pass") {
  SimFixture sim;
  const Stream stream = sim.stream();
  const Event event = sim.recorded(stream);
  int* const device = sim.ints(10);
  int* const pinned = sim.pinned_ints(10);
  sim.backend->begin_capture(stream);
  const GraphExec graph = sim.backend->end_capture(stream, {});
  ebb::Backend& backend = *sim.backend;
  struct Case {
    SimCall call;
    std::string name;
    std::function<void()> make;
  };
  const std::vector<Case> cases{
      {SimCall::make_stream, "cudaStreamCreateWithFlags", [&] { sim.stream(); }},
      {SimCall::make_event, "cudaEventCreateWithFlags", [&] { backend.make_event(stream.device); }},
      {SimCall::record, "cudaEventRecord", [&] { backend.record(event, stream); }},
      {SimCall::query, "cudaEventQuery", [&] { static_cast<void>(backend.is_done(event)); }},
      {SimCall::wait, "cudaStreamWaitEvent", [&] { backend.wait(stream, event); }},
      {SimCall::copy, "cudaMemcpyAsync", [&] { sim.copy_ints(device, pinned, 10, stream); }},
      {SimCall::copy_rows, "cudaMemcpy2DAsync",
       [&] {
         backend.copy_rows(device, pinned, {Bytes{4}, 2, 8, 8}, stream);
       }},
      {SimCall::fill, "cudaMemsetAsync", [&] { sim.fill_ints(device, 1, 10, stream); }},
      {SimCall::call, "cudaLaunchHostFunc", [&] { backend.call([](void*) {}, nullptr, stream); }},
      {SimCall::begin_capture, "cudaStreamBeginCapture",
       [&] {
         backend.begin_capture(stream);
         backend.abandon_capture(stream);
       }},
      {SimCall::end_capture, "cudaStreamEndCapture",
       [&] {
         backend.begin_capture(stream);
         backend.end_capture(stream, {});
       }},
      {SimCall::launch, "cudaGraphLaunch", [&] { backend.launch(graph, stream); }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::uint64_t before = sim.machine.counts().of(c.call);
    sim.machine.fail(c.call, 1, {.code = 42});
    CHECK(code_of(c.make) == 0);
    try {
      c.make();
      FAIL("no fault");
    } catch (const ebb::DeviceError& error) {
      CHECK(error.call() == c.name);
      CHECK(error.code() == 42);
      CHECK_FALSE(error.is_lost());
    }
    CHECK(code_of(c.make) == 0);
    CHECK(sim.machine.counts().of(c.call) == before + 3);
  }
  CHECK(sim.machine.drain());
}

TEST_CASE("simulated faults: a context that could not be made is made by the next call") {
  SimFixture sim;
  sim.machine.fail(SimCall::make_context, 0, {.code = 2});
  CHECK(code_of([&] { sim.backend->source(sim.machine.device()); }) == 2);
  CHECK(code_of([&] { sim.backend->source(sim.machine.device()); }) == 0);
}

TEST_CASE("simulated faults: what cannot throw is refused") {
  SimFixture sim;
  ebb::Source& source = sim.backend->source(sim.machine.device());
  sim.machine.fail(SimCall::reserve);
  CHECK_FALSE(source.reserve(sim_page));
  const Range range = source.reserve(sim_page);
  sim.machine.fail(SimCall::commit);
  CHECK_FALSE(source.commit(range));
  CHECK(source.commit(range));
  ebb::Source& pinned = sim.backend->pinned(sim.machine.device());
  const Range host = pinned.reserve(sim_page);
  sim.machine.fail(SimCall::pin);
  CHECK_FALSE(pinned.commit(host));
  CHECK(pinned.commit(host));
}

TEST_CASE("simulated faults: a device that is lost fails every call, another none") {
  SimFixture sim(2);
  const Stream stream = sim.stream(0);
  const Stream other = sim.stream(1);
  int* const host = sim.pinned_ints(1);
  *host = 0;
  const Event event = sim.recorded(stream);
  sim.machine.hold(stream);
  sim.fill_ints(host, 1, 1, stream);
  SUBCASE("by a call") {
    sim.machine.fail(SimCall::query, 0, {.code = 719, .is_lost = true});
    CHECK(code_of([&] { sim.backend->is_done(event); }) == 719);
  }
  SUBCASE("by its work") {
    sim.machine.lose(sim.machine.device(), 719);
  }
  CHECK(code_of([&] { sim.backend->is_done(event); }) == 719);
  CHECK(code_of([&] { sim.stream(0); }) == 719);
  sim.machine.resume(stream);
  CHECK(sim.machine.drain());
  CHECK(*host == 0);  // it does nothing more
  CHECK(sim.comes(sim.recorded(other)));
}

TEST_CASE("simulated faults: a driver that has shut down does nothing") {
  SimFixture sim;
  const Stream stream = sim.stream();
  const Event event = sim.recorded(stream);
  ebb::Source& source = sim.backend->source(sim.machine.device());
  const Range range = source.reserve(sim_page);
  REQUIRE(source.commit(range));
  sim.machine.shut_down();
  CHECK(code_of([&] { sim.backend->record(event, stream); }) == 4);
  CHECK_THROWS_WITH_AS(sim.backend->make_event(stream.device),
                       doctest::Contains("driver shutting down"), ebb::DeviceError);
  CHECK_FALSE(source.commit(range));
  source.decommit(range);
  source.release(range);
  range.begin[0] = std::byte{1};  // still there
  sim.backend->destroy_event(event);
  sim.backend->destroy_stream(stream);
  CHECK(sim.machine.counts().events == 1);
  CHECK(sim.backend->devices().empty());
  CHECK_FALSE(sim.backend->missing().empty());
}

TEST_CASE("simulated faults: what the machine does not know is the caller's mistake") {
  SimFixture sim;
  const Stream strange{{ebb::DeviceKind::sim, 7}, 0};
  CHECK_THROWS_WITH_AS(sim.backend->source(strange.device), doctest::Contains("sim:7 is no device"),
                       std::invalid_argument);
  CHECK_THROWS_AS(sim.backend->source(ebb::cpu), std::invalid_argument);
  CHECK_THROWS_AS(sim.backend->is_done({999999}), std::invalid_argument);
  CHECK_THROWS_AS(sim.machine.hold(strange), std::invalid_argument);
  CHECK_THROWS_AS(ebb::SimMachine({.devices = 0}), std::invalid_argument);
  CHECK_THROWS_AS(ebb::SimMachine({.page = Bytes{5000}}), std::invalid_argument);
  sim.backend->destroy_stream(strange);
  sim.backend->destroy_event({999999});
  sim.backend->destroy_graph({999999});
  sim.backend->abandon_capture(strange);
}

TEST_CASE("simulated faults: a forked child throws, and leaves the parent's queues alone") {
  SimFixture sim;
  const Stream stream = sim.stream();
  REQUIRE(sim.comes(sim.recorded(stream)));
  auto machine = std::make_unique<SimFixture>();
  const Stream second = machine->stream();
  REQUIRE(machine->comes(machine->recorded(second)));
  const int status = ebb::test::run_in_child(
      [&] {
        try {
          sim.recorded(stream);
          return 1;
        } catch (const ebb::ForkedError&) {
        }
        machine.reset();
        return 0;
      },
      60);
  CHECK(ebb::test::exited_with_0(status));
  CHECK(sim.comes(sim.recorded(stream)));
}
