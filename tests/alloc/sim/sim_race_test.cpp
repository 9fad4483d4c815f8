// SPDX-License-Identifier: Apache-2.0
// That a thread sanitizer sees memory which is used again too early: each order that a program
// forgot must be one that the simulated device does not make up for. Children end with the
// sanitizer's exit status; without one there is nothing to see. [alloc.sim]
#include "sim_fixture.h"
#include "support/child.h"

#include <functional>

#include <fcntl.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define EBB_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EBB_TEST_TSAN 1
#endif
#endif

using ebb::Event;
using ebb::Stream;
using ebb::test::SimFixture;

#ifdef EBB_TEST_TSAN

namespace {

// Lets queues come to rest without being ordered after them.
void rest(const SimFixture& sim) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!sim.machine.is_idle() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Whether the program has a race. Its exit status says so.
bool has_race(const std::function<void(SimFixture&)>& program) {
  const int status = ebb::test::run_in_child(
      [&] {
        const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
        ::dup2(nowhere, STDERR_FILENO);  // the report is expected
        ::close(nowhere);
        SimFixture sim(2);
        program(sim);
        return 0;
      },
      120);
  REQUIRE(WIFEXITED(status));
  CHECK((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 66));
  return WEXITSTATUS(status) == 66;
}

}  // namespace

TEST_CASE("simulated races: a host that writes what a copy still reads is seen") {
  const auto program = [](SimFixture& sim, bool asks, bool records_again) {
    const Stream stream = sim.stream();
    int* const host = sim.pinned_ints(1);
    int* const device = sim.ints(1);
    *host = 1;
    sim.copy_ints(device, host, 1, stream);
    const Event event = sim.recorded(stream);
    rest(sim);
    if (asks) {
      CHECK(sim.comes(event));
    }
    if (records_again) {  // more calls do not help
      sim.backend->record(event, stream);
      sim.fill_ints(device, 1, 1, stream);
      rest(sim);
    }
    *host = 2;
  };
  CHECK(has_race([&](SimFixture& sim) { program(sim, false, false); }));
  CHECK(has_race([&](SimFixture& sim) { program(sim, false, true); }));
  CHECK_FALSE(has_race([&](SimFixture& sim) { program(sim, true, false); }));
  CHECK_FALSE(has_race([&](SimFixture& sim) { program(sim, true, true); }));
}

TEST_CASE("simulated races: two streams that use one place without an event are seen") {
  const auto program = [](SimFixture& sim, bool waits) {
    const Stream one = sim.stream();
    const Stream two = sim.stream();
    const Stream third = sim.stream(1);
    int* const device = sim.ints(2);
    for (int i = 0; i < 3; ++i) {
      sim.fill_ints(device, 1, 1, one);
    }
    const Event event = sim.recorded(one);
    rest(sim);
    if (waits) {
      sim.backend->wait(third, event);  // by way of another
      sim.backend->wait(two, sim.recorded(third));
    }
    sim.fill_ints(device + 1, 2, 1, two);
    sim.fill_ints(device, 2, 1, two);
    rest(sim);
  };
  CHECK(has_race([&](SimFixture& sim) { program(sim, false); }));
  CHECK_FALSE(has_race([&](SimFixture& sim) { program(sim, true); }));
}

TEST_CASE("simulated races: two threads that use the driver are not ordered by it") {
  CHECK(has_race([](SimFixture& sim) {
    const Stream stream = sim.stream();
    int* const device = sim.ints(1);
    int plain = 0;
    std::thread first([&] {
      plain = 1;
      sim.fill_ints(device, 1, 1, stream);
    });
    std::thread second([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      sim.fill_ints(device, 1, 1, stream);
      plain = 2;
    });
    first.join();
    second.join();
  }));
}

#endif
