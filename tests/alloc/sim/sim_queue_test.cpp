// SPDX-License-Identifier: Apache-2.0
// Streams of simulated devices: order, events, pace, and where copies read. [alloc.sim]
#include "sim_fixture.h"
#include "support/sanitized.h"

#include <algorithm>
#include <atomic>
#include <vector>

using ebb::Bytes;
using ebb::Event;
using ebb::Stream;
using ebb::test::SimFixture;
using namespace std::chrono_literals;

TEST_CASE("simulated streams: work runs in order, and an event is done when all before it is") {
  SimFixture sim;
  const Stream stream = sim.stream();
  int* const device = sim.ints(100);
  int* const host = sim.pinned_ints(100);
  for (std::uint32_t i = 1; i <= 20; ++i) {
    sim.fill_ints(device, i, 100, stream);
  }
  sim.copy_ints(host, device, 100, stream);
  REQUIRE(sim.comes(sim.recorded(stream)));
  CHECK(std::all_of(host, host + 100, [](int i) { return i == 20; }));
  CHECK(sim.machine.violations().empty());
}

TEST_CASE("simulated streams: no thread and no context before the first use") {
  SimFixture sim;
  CHECK(sim.machine.counts().of(ebb::SimCall::make_context) == 0);
  CHECK(sim.backend->devices().size() == 1);
  CHECK(sim.machine.counts().of(ebb::SimCall::make_context) == 0);
  sim.stream();
  sim.ints(1);
  CHECK(sim.machine.counts().of(ebb::SimCall::make_context) == 1);
  CHECK(sim.machine.is_idle());
}

TEST_CASE("simulated streams: an event that was never recorded is done") {
  SimFixture sim;
  CHECK(sim.backend->is_done(sim.backend->make_event(sim.machine.device())));
}

TEST_CASE("simulated streams: an event that is recorded again is done for the last one only") {
  SimFixture sim;
  const Stream quick = sim.stream();
  const Stream slow = sim.stream();
  const Event event = sim.recorded(quick);
  REQUIRE(sim.comes(event));
  sim.machine.hold(slow);
  sim.backend->record(event, slow);
  REQUIRE(sim.machine.drain(1ms) == false);
  CHECK_FALSE(sim.backend->is_done(event));
  sim.machine.resume(slow);
  CHECK(sim.comes(event));
}

TEST_CASE("simulated streams: a held stream runs what it is stepped through") {
  SimFixture sim;
  const Stream stream = sim.stream();
  int* const host = sim.pinned_ints(3);
  std::fill(host, host + 3, 0);
  sim.machine.hold(stream);
  std::vector<Event> events;
  for (int i = 0; i < 3; ++i) {
    sim.fill_ints(host + i, 7, 1, stream);
    events.push_back(sim.recorded(stream));
  }
  CHECK_FALSE(sim.backend->is_done(events[0]));
  CHECK(sim.machine.step(stream, 2) == 2);
  CHECK(sim.backend->is_done(events[0]));
  CHECK(host[0] == 7);
  CHECK_FALSE(sim.backend->is_done(events[1]));
  CHECK(sim.machine.step(stream, 100) == 4);
  CHECK(sim.backend->is_done(events[2]));
  CHECK(sim.machine.step(stream) == 0);
  sim.machine.resume(stream);
  CHECK_THROWS_WITH_AS(sim.machine.step(stream), doctest::Contains("not held"),
                       std::invalid_argument);
}

TEST_CASE("simulated streams: a step ends at its deadline where a stream waits for another") {
  SimFixture sim;
  const Stream early = sim.stream();
  const Stream late = sim.stream();
  sim.machine.hold_all();
  sim.backend->wait(late, sim.recorded(early));
  const Event end = sim.recorded(late);
  CHECK(sim.machine.step(late, 2, 20ms) == 0);
  sim.machine.resume(early);
  CHECK(sim.machine.step(late, 2) == 2);
  CHECK(sim.backend->is_done(end));
}

TEST_CASE("simulated streams: one waits for another's event, not for what came later") {
  SimFixture sim(2);
  const Stream early = sim.stream(0);
  const Stream late = sim.stream(1);
  int* const from = sim.ints(20, 0);
  int* const to = sim.ints(10, 1);
  int* const host = sim.pinned_ints(10);
  sim.machine.hold(early);
  sim.fill_ints(from, 5, 10, early);
  const Event event = sim.recorded(early);
  sim.fill_ints(from + 10, 6, 10, early);
  sim.backend->wait(late, event);
  sim.copy_ints(to, from, 10, late);
  sim.copy_ints(host, to, 10, late);
  const Event end = sim.recorded(late);
  CHECK_FALSE(sim.backend->is_done(end));
  CHECK(sim.machine.step(early, 2) == 2);
  REQUIRE(sim.comes(end));
  CHECK(std::all_of(host, host + 10, [](int i) { return i == 5; }));
}

TEST_CASE("simulated streams: pageable memory has been read when the copy returns") {
  SimFixture sim;
  const Stream stream = sim.stream();
  int* const device = sim.ints(1);
  int* const back = sim.pinned_ints(1);
  int pageable = 1;
  sim.machine.hold(stream);
  sim.copy_ints(device, &pageable, 1, stream);
  sim.copy_ints(back, device, 1, stream);
  const Event event = sim.recorded(stream);
  pageable = 2;
  sim.machine.resume(stream);
  REQUIRE(sim.comes(event));
  CHECK(*back == 1);
}

TEST_CASE("simulated streams: pinned memory is read when the queue gets there") {
  if (ebb::test::is_sanitized()) {
    return;  // the program is wrong, which sim_race_test.cpp is about
  }
  SimFixture sim;
  const Stream stream = sim.stream();
  int* const pinned = sim.pinned_ints(2);
  pinned[0] = 1;
  sim.machine.hold(stream);
  sim.copy_ints(pinned + 1, pinned, 1, stream);
  const Event event = sim.recorded(stream);
  pinned[0] = 2;  // too early
  sim.machine.resume(stream);
  REQUIRE(sim.comes(event));
  CHECK(pinned[1] == 2);
}

TEST_CASE("simulated streams: rows are copied between pitches, and fills repeat each width") {
  SimFixture sim;
  const Stream stream = sim.stream();
  int* const device = sim.ints(12);
  int* const host = sim.pinned_ints(12);
  const std::vector<int> matrix{1, 2, 3, 4, 5, 6};  // 2 rows of 3
  sim.fill_ints(device, 9, 12, stream);
  sim.backend->copy_rows(device, matrix.data(), {Bytes::of<int>(2), 2, 16, 12}, stream);
  sim.backend->fill(device + 8, {0x12, 1}, 4, stream);
  sim.backend->fill(device + 9, {0x3456, 2}, 2, stream);
  sim.backend->fill(device + 10, {0x100000002U, 8}, 1, stream);
  sim.copy_ints(host, device, 12, stream);
  REQUIRE(sim.comes(sim.recorded(stream)));
  const std::vector<int> expected{1, 2, 9, 9, 4, 5, 9, 9, 0x12121212, 0x34563456, 2, 1};
  CHECK(std::vector<int>(host, host + 12) == expected);
  CHECK_THROWS_AS(sim.backend->fill(device, {0, 3}, 1, stream), std::invalid_argument);
  CHECK_THROWS_AS(sim.backend->copy_rows(device, device, {Bytes{8}, 2, 4, 8}, stream),
                  std::invalid_argument);
}

TEST_CASE("simulated streams: a host function runs in its turn, and may not call the driver") {
  SimFixture sim;
  const Stream stream = sim.stream();
  struct Context {
    SimFixture* sim;
    std::atomic<int> code{0};
  } context{&sim};
  sim.backend->call(
      [](void* seen) {
        auto& known = *static_cast<Context*>(seen);
        known.code = ebb::test::code_of(
            [&] { known.sim->backend->make_event(known.sim->machine.device()); });
      },
      &context, stream);
  REQUIRE(sim.comes(sim.recorded(stream)));
  CHECK(context.code == 800);
  REQUIRE(sim.machine.violations().size() == 1);
  CHECK(sim.machine.violations()[0] == "cudaEventCreateWithFlags called from a host function");
}

TEST_CASE("simulated streams: events are seen late, in order on each, out of order between two") {
  SimFixture sim;
  const Stream first = sim.stream();
  const Stream second = sim.stream();
  sim.machine.set_event_lag(first, 1h);
  const Event early = sim.recorded(first);
  REQUIRE(sim.machine.drain());
  const Event late = sim.recorded(second);
  CHECK(sim.comes(late));
  CHECK_FALSE(sim.backend->is_done(early));
  sim.machine.set_event_lag(first, 0ms);
  const Event behind = sim.recorded(first);
  REQUIRE(sim.machine.drain());
  CHECK_FALSE(sim.backend->is_done(behind));  // since the one before it is not
}

TEST_CASE("simulated streams: a stream that is destroyed goes on to its end") {
  SimFixture sim;
  const Stream stream = sim.stream();
  int* const host = sim.pinned_ints(1);
  sim.machine.hold_all();
  sim.fill_ints(host, 3, 1, stream);
  const Event event = sim.recorded(stream);
  sim.backend->destroy_stream(stream);
  CHECK_THROWS_WITH_AS(sim.backend->record(event, stream), doctest::Contains("has no stream"),
                       std::invalid_argument);
  CHECK(sim.machine.counts().streams == 0);
  CHECK_FALSE(sim.backend->is_done(event));
  sim.machine.resume_all();
  REQUIRE(sim.comes(event));
  CHECK(*host == 3);
  sim.stream();  // joins it
}

TEST_CASE("simulated streams: a borrowed one is the host's, by whatever number") {
  SimFixture sim;
  const ebb::Device device = sim.machine.device();
  void* const handle = sim.machine.host_stream(device);
  const Stream one{device, ebb::next_stream_id(1)};
  const Stream two{device, ebb::next_stream_id(2)};
  sim.backend->borrow_stream(one, handle);
  sim.backend->borrow_stream(two, handle);
  CHECK(sim.backend->handle_of(two) == handle);
  sim.machine.hold(one);
  const Event event = sim.recorded(two);
  CHECK_FALSE(sim.backend->is_done(event));
  sim.machine.resume(two);
  CHECK(sim.comes(event));
  sim.backend->destroy_stream(one);
  CHECK(sim.comes(sim.recorded(two)));
  int nothing = 0;
  CHECK_THROWS_AS(sim.backend->borrow_stream({device, ebb::next_stream_id(3)}, &nothing),
                  std::invalid_argument);
}

TEST_CASE("simulated streams: the default one is there from the start") {
  SimFixture sim;
  const Stream stream{sim.machine.device(), 0};
  int* const host = sim.pinned_ints(1);
  sim.fill_ints(host, 4, 1, stream);
  REQUIRE(sim.comes(sim.recorded(stream)));
  CHECK(*host == 4);
}

TEST_CASE("simulated streams: a backend that goes drops what is held, at once") {
  std::atomic<int> calls{0};
  const auto begin = std::chrono::steady_clock::now();
  {
    SimFixture sim;
    const Stream held = sim.stream();
    const Stream waiting = sim.stream();
    const Stream slow = sim.stream();
    sim.machine.hold(held);
    sim.machine.set_delay(slow, 1h);
    const auto count = [](void* seen) { ++*static_cast<std::atomic<int>*>(seen); };
    for (const Stream stream : {held, slow}) {
      sim.backend->call(count, &calls, stream);
    }
    sim.backend->wait(waiting, sim.recorded(slow));
    sim.backend->call(count, &calls, waiting);
  }
  CHECK(std::chrono::steady_clock::now() - begin < 9s);
  CHECK(calls <= 1);  // the held one is resumed, and may get there first
}

TEST_CASE("simulated streams: the backend outlives the machine, and what was held goes on") {
  std::shared_ptr<ebb::Backend> backend;
  Event event;
  {
    SimFixture sim;
    const Stream stream = sim.stream();
    sim.machine.hold_all();
    event = sim.recorded(stream);
    backend = sim.backend;
  }
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!backend->is_done(event) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  CHECK(backend->is_done(event));
}
