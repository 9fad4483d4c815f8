// SPDX-License-Identifier: Apache-2.0
// Each of a driver's calls fails in turn, once or with the device: that is told, nothing hangs,
// nothing is left behind, and after a failure that passes the same program works.
// notes/allocators.md section 4 item 14. [alloc.cuda] [alloc.sim]
#include "device_fault_rig.h"
#include "support/sanitized.h"

#include <cstddef>
#include <cstdint>

using namespace ebb;
using ebb::test::FaultRig;

namespace {

bool destroys(SimCall call) {
  return call == SimCall::destroy_stream || call == SimCall::destroy_event ||
         call == SimCall::destroy_graph;
}
bool gives_pages_back(SimCall call) {
  return call == SimCall::decommit || call == SimCall::release || call == SimCall::unpin ||
         call == SimCall::release_pinned;
}

// Those that something fails without: what only asks, or gives back, is asked again.
bool must_be_told(SimCall call) {
  switch (call) {
    case SimCall::make_context:
    case SimCall::make_stream:
    case SimCall::borrow_stream:
    case SimCall::copy:
    case SimCall::copy_rows:
    case SimCall::fill:
    case SimCall::begin_capture:
    case SimCall::end_capture:
    case SimCall::launch:
      return true;
    default:
      return false;
  }
}

// How often the scenario makes each call.
SimCounts calls_of_scenario() {
  FaultRig rig;
  REQUIRE_FALSE(rig.fails());
  rig.check_idle();
  rig.check_end(0);
  return rig.machine.counts();
}

// The first ones, and some of the many that follow: each time of another part of the scenario.
std::uint64_t after(std::uint64_t n) {
  return n < 12 ? n + 1 : n + 1 + n / 8;
}

}  // namespace

TEST_CASE("device faults: the scenario makes every call") {
  const SimCounts counts = calls_of_scenario();
  for (std::size_t call = 0; call < sim_calls; ++call) {
    CAPTURE(call);
    CHECK(counts.calls[call] > 0);
  }
}

TEST_CASE("device faults: each call fails once in turn, and then the same works") {
  const SimCounts counts = calls_of_scenario();
  for (std::size_t index = 0; index < sim_calls; ++index) {
    const auto call = static_cast<SimCall>(index);
    for (std::uint64_t n = 0; n < counts.of(call); n = after(n)) {
      CAPTURE(index);
      CAPTURE(n);
      FaultRig rig;
      rig.machine.fail(call, n);
      const bool told = rig.fails();
      CHECK((told || !rig.logged.empty() || !must_be_told(call)));
      rig.machine.fail(call, std::uint64_t{1} << 40);  // no more
      rig.check_idle();
      CHECK_FALSE(rig.fails());
      rig.check_idle();
      rig.check_end(destroys(call) ? 1 : 0);
      if (!gives_pages_back(call)) {
        CHECK(rig.machine.memory(rig.machine.device()).committed == Bytes{});
        CHECK(rig.machine.pinned_memory(rig.machine.device()).committed == Bytes{});
      }
    }
  }
}

TEST_CASE("device faults: the device is lost at each call in turn") {
  if (ebb::test::is_thread_sanitized()) {
    return;  // what a lost device did not come to is left behind
  }
  const SimCounts counts = calls_of_scenario();
  for (std::size_t index = 0; index < sim_calls; ++index) {
    const auto call = static_cast<SimCall>(index);
    for (std::uint64_t n = 0; n < counts.of(call); n = after(n)) {
      CAPTURE(index);
      CAPTURE(n);
      FaultRig rig;
      rig.machine.fail(call, n, {.code = 700, .is_lost = true});
      rig.fails();
      CHECK(rig.rt->stats().storages_live == 0);
      rig.rt.reset();
      CHECK(rig.machine.violations().empty());
    }
  }
}
