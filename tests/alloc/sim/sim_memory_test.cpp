// SPDX-License-Identifier: Apache-2.0
// Pages of simulated devices: capacity, what is noticed, and heaps on them. [alloc.sim]
#include "sim_fixture.h"
#include "support/child.h"
#include "support/sanitized.h"

#include <ebb/alloc/pool.h>

#include <csignal>
#include <string>

using ebb::Bytes;
using ebb::Range;
using ebb::Stream;
using ebb::test::code_of;
using ebb::test::sim_page;
using ebb::test::SimFixture;

TEST_CASE("simulated memory: pages are committed up to the capacity, each once") {
  SimFixture sim;
  ebb::Source& source = sim.backend->source(sim.machine.device());
  CHECK(source.device() == sim.machine.device());
  CHECK(source.page_size() == sim_page);
  CHECK(std::string(source.name()) == "sim:0");
  const Range range = source.reserve(sim_page * 40 + Bytes{1});
  REQUIRE(range);
  CHECK(range.bytes == sim_page * 41);
  CHECK(reinterpret_cast<std::uintptr_t>(range.begin) % sim_page.count() == 0);
  CHECK(sim.machine.memory(sim.machine.device()).committed == Bytes{0});
  CHECK(source.commit({range.begin, sim_page * 10}));
  CHECK(source.commit({range.begin + sim_page.count() * 5, sim_page * 10}));
  CHECK(sim.machine.memory(sim.machine.device()).committed == sim_page * 15);
  CHECK_FALSE(source.commit({range.begin + sim_page.count() * 20, sim_page * 2}));
  CHECK(sim.machine.memory(sim.machine.device()).committed == sim_page * 15);
  source.decommit({range.begin, sim_page * 20});
  CHECK(sim.machine.memory(sim.machine.device()).committed == Bytes{0});
  sim.machine.set_capacity(sim.machine.device(), sim_page);
  CHECK_FALSE(source.commit({range.begin, sim_page * 2}));
  CHECK(source.commit({range.begin, sim_page}));
  source.release(range);
  const ebb::SimMemory memory = sim.machine.memory(sim.machine.device());
  CHECK(memory.committed == Bytes{0});
  CHECK(memory.committed_peak == sim_page * 15);
}

TEST_CASE("simulated memory: fresh pages hold no zeros, pinned ones do") {
  SimFixture sim;
  ebb::Source& source = sim.backend->source(sim.machine.device());
  const Range range = source.reserve(sim_page);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(source.commit(range));
    CHECK(range.begin[0] == std::byte{0xa5});
    CHECK(range.begin[sim_page.count() - 1] == std::byte{0xa5});
    range.begin[0] = std::byte{1};
    source.decommit(range);
  }
  ebb::Source& pinned = sim.backend->pinned(sim.machine.device());
  CHECK(pinned.device() == ebb::cpu);
  CHECK(std::string(pinned.name()) == "pinned host memory (sim:0)");
  CHECK(*sim.pinned_ints(1) == 0);
  CHECK(sim.machine.pinned_memory(sim.machine.device()).committed == sim_page);
  CHECK_FALSE(pinned.commit(pinned.reserve(sim_page * 8)));
}

TEST_CASE("simulated memory: a page that went back cannot be touched") {
  if (ebb::test::is_sanitized()) {
    return;  // they report the signal
  }
  const int status = ebb::test::run_in_child([] {
    SimFixture sim;
    ebb::Source& source = sim.backend->source(sim.machine.device());
    const Range range = source.reserve(sim_page);
    if (!source.commit(range)) {
      return 1;
    }
    source.decommit(range);
    std::signal(SIGSEGV, SIG_DFL);
    *const_cast<volatile std::byte*>(range.begin) = std::byte{0};
    return 0;
  });
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("simulated memory: pages that go while queued work uses them are noticed") {
  SimFixture sim;
  const ebb::Device device = sim.machine.device();
  const Stream stream = sim.stream();
  ebb::Source& source = sim.backend->source(device);
  const Range range = source.reserve(sim_page * 3);
  REQUIRE(source.commit(range));
  sim.machine.hold(stream);
  sim.backend->fill(range.begin, {0, 1}, sim_page.count() + 1, stream);
  SUBCASE("one of them") {
    source.decommit({range.begin + sim_page.count() * 2, sim_page});
    CHECK(sim.machine.violations().empty());
    source.decommit({range.begin + sim_page.count(), sim_page});
  }
  SUBCASE("all with their addresses") {
    source.release(range);
  }
  REQUIRE(sim.machine.violations().size() == 1);
  CHECK(sim.machine.violations()[0].find("queued work uses") != std::string::npos);
  const ebb::Event event = sim.recorded(stream);
  sim.machine.resume(stream);
  REQUIRE(sim.machine.drain());
  CHECK(code_of([&] { sim.backend->is_done(event); }) == 700);
}

TEST_CASE("simulated memory: work that was done uses nothing") {
  SimFixture sim;
  const Stream stream = sim.stream();
  ebb::Source& source = sim.backend->source(sim.machine.device());
  const Range range = source.reserve(sim_page * 3);
  REQUIRE(source.commit(range));
  sim.backend->fill(range.begin, {0, 1}, range.bytes.count(), stream);
  REQUIRE(sim.comes(sim.recorded(stream)));
  source.release(range);
  CHECK(sim.machine.violations().empty());
}

TEST_CASE("simulated memory: an illegal address loses the device, later") {
  SimFixture sim(2);
  const Stream stream = sim.stream();
  const Stream other = sim.stream();
  const Stream elsewhere = sim.stream(1);
  ebb::Source& source = sim.backend->source(sim.machine.device());
  const Range range = source.reserve(sim_page * 2);
  REQUIRE(source.commit({range.begin, sim_page}));
  int* const host = sim.pinned_ints(1);
  std::size_t bytes = 0;
  SUBCASE("not committed") {
    bytes = sim_page.count() + 1;
  }
  SUBCASE("beyond the range") {
    REQUIRE(source.commit(range));
    bytes = sim_page.count() * 2 + 1;
  }
  sim.machine.hold(other);
  sim.fill_ints(host, 8, 1, other);
  sim.backend->wait(elsewhere, sim.recorded(other));
  sim.backend->fill(range.begin, {0, 1}, bytes, stream);
  sim.machine.resume(other);
  REQUIRE(sim.machine.drain());
  const int code = code_of([&] { sim.recorded(other); });
  CHECK(code == 700);
  try {
    sim.backend->record(ebb::Event{1}, stream);
    FAIL("a lost device took work");
  } catch (const ebb::DeviceError& error) {
    CHECK(error.is_lost());
    CHECK(error.device() == "sim:0");
  }
  CHECK_FALSE(source.commit(range));
  sim.backend->destroy_stream(stream);
  CHECK(sim.comes(sim.recorded(elsewhere)));  // the other device works on
}

TEST_CASE("simulated memory: what is neither the device's nor pinned is not filled") {
  SimFixture sim;
  int pageable = 0;
  CHECK(code_of([&] { sim.fill_ints(&pageable, 1, 1, sim.stream()); }) == 1);
}

TEST_CASE("simulated memory: heaps live on it, and refuse at its capacity") {
  SimFixture sim;
  {
    ebb::Pool pool(sim.backend->source(sim.machine.device()), {.name = "device"});
    ebb::Heap& heap = pool.acquire();
    const ebb::Block small = heap.allocate(Bytes{1000}, ebb::default_align_cuda);
    const ebb::Block large = heap.allocate(sim_page * 10, ebb::default_align_cuda);
    CHECK_THROWS_AS(heap.allocate(sim_page * 10, ebb::default_align_cuda), ebb::OutOfMemory);
    heap.deallocate(large);
    heap.deallocate(small);
    ebb::Pool::park(heap);
  }
  CHECK(sim.machine.memory(sim.machine.device()).committed == Bytes{0});
  CHECK(sim.machine.memory(sim.machine.device()).committed_peak >= sim_page * 10);
  CHECK(sim.machine.violations().empty());
}
