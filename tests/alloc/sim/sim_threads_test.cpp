// SPDX-License-Identifier: Apache-2.0
// Threads that make, use and end streams, events and pages of one simulated machine at once, while
// it is held, resumed and made to fail. EBB_TEST_SEED repeats a run. [alloc.sim]
#include "sim_fixture.h"
#include "support/test_settings.h"

#include <atomic>
#include <random>
#include <vector>

using ebb::Bytes;
using ebb::Event;
using ebb::Range;
using ebb::Stream;
using ebb::test::sim_page;
using ebb::test::SimFixture;

namespace {

// What one thread does: a stream of its own, pages that come and go, and a look at what it wrote.
// Calls may be refused; but what was queued and seen done is right.
void work(SimFixture& sim, std::uint64_t seed, std::uint64_t steps, std::uint32_t lane) {
  std::mt19937_64 random(seed);
  const ebb::Device device = sim.machine.device(lane % 2);
  ebb::Source& source = sim.backend->pinned(device);
  for (std::uint64_t i = 0; i < steps; ++i) {
    const Stream stream{device, ebb::next_stream_id(lane)};
    const Range range = source.reserve(sim_page);
    REQUIRE(range);
    try {
      sim.backend->make_stream(stream);
      if (source.commit(range)) {
        const auto value = static_cast<unsigned char>(random());
        sim.backend->fill(range.begin, {value, 1}, sim_page.count(), stream);
        const Event event = sim.recorded(stream);
        const bool came = sim.comes(event);  // doctest would catch what it throws
        REQUIRE(came);
        REQUIRE(static_cast<unsigned char>(range.begin[random() % sim_page.count()]) == value);
        sim.backend->destroy_event(event);
      }
    } catch (const ebb::DeviceError& error) {
      REQUIRE(error.code() == 77);
      REQUIRE(sim.machine.drain());
    }
    sim.backend->destroy_stream(stream);
    source.release(range);
  }
}

}  // namespace

TEST_CASE("simulated devices: threads share one machine, whatever happens to it") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  SimFixture sim(2);
  const std::uint64_t steps = ebb::test::stress(20000) / 100;
  std::atomic<unsigned> working{4};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      work(sim, seed + i, steps, i + 1);
      --working;
    });
  }
  std::mt19937_64 random(seed);
  while (working != 0) {
    sim.machine.hold_all();
    const auto call = static_cast<ebb::SimCall>(random() % ebb::sim_calls);
    // What gives pages back would keep them when it fails.
    if (call != ebb::SimCall::release_pinned && call != ebb::SimCall::reserve_pinned) {
      sim.machine.fail(call, random() % 20, {.code = 77});
    }
    sim.machine.set_delay_all(std::chrono::microseconds(random() % 50));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    sim.machine.resume_all();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 600));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(sim.machine.drain());
  for (unsigned device = 0; device < 2; ++device) {
    CHECK(sim.machine.pinned_memory(sim.machine.device(device)).committed == Bytes{0});
  }
  CHECK(sim.machine.violations().empty());
}

TEST_CASE("simulated devices: pages that go while work is at them do not end the process") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    SimFixture sim;
    const Stream stream = sim.stream();
    ebb::Source& source = sim.backend->source(sim.machine.device());
    const Range range = source.reserve(sim_page * 16);
    REQUIRE(source.commit(range));
    sim.backend->fill(range.begin, {1, 1}, range.bytes.count(), stream);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    if (round % 2 == 0) {
      source.decommit(range);
    } else {
      source.release(range);
    }
    REQUIRE(sim.machine.drain());
    CHECK(sim.machine.memory(sim.machine.device()).committed == Bytes{0});
  }
}
