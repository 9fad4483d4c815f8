// SPDX-License-Identifier: Apache-2.0
// Captures on simulated devices: what is collected, what spoils them, what a launch runs.
// [alloc.sim] [alloc.graph]
#include "sim_fixture.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using ebb::Bytes;
using ebb::Event;
using ebb::GraphExec;
using ebb::Range;
using ebb::Stream;
using ebb::test::code_of;
using ebb::test::sim_page;
using ebb::test::SimFixture;

namespace {

// A capture on one stream of a machine with what the tests use.
struct Capturing : SimFixture {
  Capturing() : SimFixture(2) {
    free = source.reserve(sim_page * 2);
    REQUIRE(source.commit({free.begin, sim_page}));
    outside = recorded(other);
    REQUIRE(comes(outside));
    backend->begin_capture(stream);
  }

  Stream stream = SimFixture::stream();
  Stream other = SimFixture::stream();
  int* device = ints(100);
  int* host = pinned_ints(100);
  ebb::Source& source = backend->source(machine.device());
  Range free;
  Event outside;
};

}  // namespace

TEST_CASE("simulated capture: work is collected, and runs at each launch") {
  Capturing sim;
  sim.copy_ints(sim.device, sim.host, 10, sim.stream);
  sim.fill_ints(sim.device, 4, 5, sim.stream);
  sim.copy_ints(sim.host + 10, sim.device, 10, sim.stream);
  const GraphExec graph = sim.backend->end_capture(sim.stream, {});
  REQUIRE(graph.id != 0);
  CHECK(sim.machine.is_idle());
  for (int value = 1; value <= 3; ++value) {
    std::fill(sim.host, sim.host + 10, value);
    sim.backend->launch(graph, sim.stream);
    REQUIRE(sim.comes(sim.recorded(sim.stream)));
    CHECK(sim.host[14] == 4);
    CHECK(sim.host[15] == value);
  }
  sim.backend->destroy_graph(graph);
  CHECK(sim.machine.counts().graphs == 0);
  CHECK_THROWS_WITH_AS(sim.backend->launch(graph, sim.stream), doctest::Contains("no graph"),
                       std::invalid_argument);
}

TEST_CASE("simulated capture: streams that wait for its events are captured until they join") {
  Capturing sim;
  const Event fork = sim.backend->make_event(sim.machine.device());
  const Event join = sim.backend->make_event(sim.machine.device());
  sim.fill_ints(sim.device, 1, 10, sim.stream);
  sim.backend->record(fork, sim.stream);
  sim.backend->wait(sim.other, fork);
  sim.copy_ints(sim.device + 10, sim.device, 10, sim.other);
  SUBCASE("joined") {
    sim.backend->record(join, sim.other);
    sim.backend->wait(sim.stream, join);
    sim.copy_ints(sim.host, sim.device + 10, 10, sim.stream);
    const GraphExec graph = sim.backend->end_capture(sim.stream, {});
    sim.backend->launch(graph, sim.other);
    REQUIRE(sim.comes(sim.recorded(sim.other)));
    CHECK(sim.host[9] == 1);
    CHECK(code_of([&] { sim.backend->is_done(join); }) == 907);
  }
  SUBCASE("left alone") {
    CHECK(code_of([&] { sim.backend->end_capture(sim.stream, {}); }) == 904);
  }
  // Both are free again.
  CHECK(sim.comes(sim.recorded(sim.stream)));
  CHECK(sim.comes(sim.recorded(sim.other)));
}

TEST_CASE("simulated capture: what would have to run at once is refused, and spoils it") {
  Capturing sim;
  int pageable = 1;
  const std::vector<std::function<void()>> forbidden{
      [&] { sim.backend->is_done(sim.outside); },
      [&] { sim.copy_ints(sim.device, &pageable, 1, sim.stream); },
      [&] { sim.copy_ints(&pageable, sim.device, 1, sim.other); },
      [&] { sim.backend->begin_capture(sim.other); },
      [&] { sim.backend->begin_capture(sim.stream); },
      [&] {
        std::thread([&] { CHECK_THROWS(sim.fill_ints(sim.device, 1, 1, sim.stream)); }).join();
        sim.fill_ints(sim.device, 1, 1, sim.stream);
        throw ebb::DeviceError("", 900, "", "");
      },
  };
  for (const auto& call : forbidden) {
    CHECK(code_of(call) == 900);
    CHECK(code_of([&] { sim.backend->end_capture(sim.stream, {}); }) == 901);
    sim.backend->begin_capture(sim.stream);
  }
  CHECK(code_of([&] { sim.backend->wait(sim.stream, sim.outside); }) == 905);
  CHECK(code_of([&] { sim.backend->end_capture(sim.stream, {}); }) == 901);
  CHECK(code_of([&] { sim.backend->end_capture(sim.stream, {}); }) == 401);
}

TEST_CASE("simulated capture: no page is mapped or pinned, and none goes") {
  Capturing sim;
  ebb::Source& pinned = sim.backend->pinned(sim.machine.device());
  sim.backend->abandon_capture(sim.stream);
  const Range other_pinned = pinned.reserve(sim_page);
  const Range more{sim.free.begin + sim_page.count(), sim_page};
  const std::vector<std::function<void()>> forbidden{
      [&] { CHECK_FALSE(sim.source.reserve(sim_page)); },
      [&] { CHECK_FALSE(sim.source.commit(more)); },
      [&] {
        sim.source.decommit({sim.free.begin, sim_page});
      },
      [&] { sim.source.release(sim.free); },
      [&] { CHECK_FALSE(pinned.commit(other_pinned)); },
      [&] { CHECK_FALSE(pinned.reserve(sim_page)); },
  };
  const Bytes before = sim.machine.memory(sim.machine.device()).committed;
  for (const auto& call : forbidden) {
    sim.backend->begin_capture(sim.stream);
    call();
    CHECK(code_of([&] { sim.backend->end_capture(sim.stream, {}); }) == 901);
  }
  CHECK(sim.machine.memory(sim.machine.device()).committed == before);
}

TEST_CASE("simulated capture: other threads, devices and streams go on") {
  Capturing sim;
  const Stream free = sim.other;
  sim.fill_ints(sim.device, 1, 1, free);
  std::thread([&] {
    int* const more = sim.ints(10);
    sim.fill_ints(more, 1, 10, free);
    CHECK(sim.comes(sim.recorded(free)));
    CHECK(code_of([&] { sim.backend->end_capture(sim.stream, {}); }) == 908);
  }).join();
  const Stream far = sim.SimFixture::stream(1);
  sim.fill_ints(sim.ints(10, 1), 1, 10, far);
  CHECK(sim.comes(sim.recorded(far)));
  CHECK(sim.backend->end_capture(sim.stream, {}).id != 0);
}

TEST_CASE("simulated capture: a graph of the same shape is changed in place, another is new") {
  Capturing sim;
  sim.fill_ints(sim.host, 1, 1, sim.stream);
  const GraphExec graph = sim.backend->end_capture(sim.stream, {});
  sim.machine.hold(sim.other);
  sim.backend->launch(graph, sim.other);
  sim.backend->begin_capture(sim.stream);
  sim.fill_ints(sim.host + 1, 2, 1, sim.stream);
  CHECK(sim.backend->end_capture(sim.stream, graph) == graph);
  sim.backend->launch(graph, sim.other);
  sim.machine.resume(sim.other);
  REQUIRE(sim.comes(sim.recorded(sim.other)));
  CHECK(sim.host[0] == 1);  // a launch runs what the graph was then
  CHECK(sim.host[1] == 2);
  sim.backend->begin_capture(sim.stream);
  SUBCASE("with more work") {
    sim.fill_ints(sim.host, 1, 1, sim.stream);
    sim.fill_ints(sim.host, 1, 1, sim.stream);
  }
  SUBCASE("with other work") {
    sim.copy_ints(sim.host, sim.device, 1, sim.stream);
  }
  CHECK(sim.backend->end_capture(sim.stream, graph) != graph);
  CHECK(sim.machine.counts().graphs == 2);
}

TEST_CASE("simulated capture: host functions run at each launch") {
  Capturing sim;
  std::atomic<int> calls{0};
  sim.backend->call([](void* seen) { ++*static_cast<std::atomic<int>*>(seen); }, &calls,
                    sim.stream);
  const GraphExec graph = sim.backend->end_capture(sim.stream, {});
  CHECK(calls == 0);
  sim.backend->launch(graph, sim.stream);
  sim.backend->launch(graph, sim.stream);
  REQUIRE(sim.comes(sim.recorded(sim.stream)));
  CHECK(calls == 2);
}

TEST_CASE("simulated capture: neither graphs nor the default stream are captured") {
  Capturing sim;
  const GraphExec graph = sim.backend->end_capture(sim.stream, {});
  sim.backend->begin_capture(sim.stream);
  CHECK(code_of([&] { sim.backend->launch(graph, sim.stream); }) == 900);
  sim.backend->abandon_capture(sim.stream);
  CHECK(code_of([&] { sim.backend->begin_capture({sim.machine.device(), 0}); }) == 900);
  CHECK(sim.comes(sim.recorded(sim.stream)));
}
