// SPDX-License-Identifier: Apache-2.0
// A runtime on a simulated device that is made to fail, and what must be left of it then. For the
// tests that have each call fail in turn. One thread.
#pragma once

#include "device_scenario.h"

#include <ebb/alloc/error.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::test {

// A machine with a runtime for the scenario, and what was logged.
struct FaultRig {
  FaultRig() {
    rt.emplace(RuntimeOptions{.executor = ebb::test::executor_choice(),
                              .devices = {cpu, machine.device()},
                              .log =
                                  [this](LogLevel, std::string_view text) {
                                    const std::lock_guard lock(mutex);
                                    logged.emplace_back(text);
                                  },
                              .backend = machine.backend(),
                              .device_deadline = std::chrono::seconds(10)});
  }
  // Runs the scenario. Returns whether it was told that something failed; what else is thrown fails
  // the test.
  bool fails() {
    try {
      DeviceScenario(*rt, machine.device(), host_stream).run();
      return false;
    } catch (const DeviceError&) {
    } catch (const std::bad_alloc&) {
    }
    return true;
  }
  // What is there when nothing is used.
  void check_idle() {
    REQUIRE(machine.drain());
    rt->empty_cache(machine.device());
    CHECK(rt->stats().storages_live == 0);
    CHECK(rt->memory(machine.device()).blocks_live == 0);
  }
  // What is left when the runtime has gone. allowed: what the driver has refused to destroy.
  void check_end(std::uint64_t allowed) {
    rt.reset();
    REQUIRE(machine.drain());
    const SimCounts counts = machine.counts();
    CHECK(counts.streams + counts.events + counts.graphs <= allowed);
    CHECK(machine.violations().empty());
  }

  SimMachine machine;
  void* host_stream = machine.host_stream(machine.device());
  std::mutex mutex;  // guards the next one
  std::vector<std::string> logged;
  std::optional<Runtime> rt;
};

}  // namespace ebb::test
