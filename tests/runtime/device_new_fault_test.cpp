// SPDX-License-Identifier: Apache-2.0
// Each operator new of a program on a device fails in turn: that is told, or done without; nothing
// is left behind, and the same program then works. [alloc.cuda] [gc.close]
#include "device_fault_rig.h"
#include "support/failing_new.h"
#include "support/test_settings.h"

#include <cstdint>

using ebb::test::FailingNew;
using ebb::test::FaultRig;

TEST_CASE("device faults: each operator new fails in turn, and then the same works") {
  // As many as there are, or so many spread over all.
  const std::uint64_t most = ebb::test::stress(20000) / 100;
  std::uint64_t calls = 0;
  {
    FaultRig rig;
    const FailingNew counting(0, 0);
    REQUIRE_FALSE(rig.fails());
    calls = counting.calls();
  }
  MESSAGE(calls << " calls of operator new");
  const std::uint64_t stride = 1 + calls / most;
  for (std::uint64_t n = 1; n <= calls; n += n < most / 4 ? 1 : stride) {
    CAPTURE(n);
    FaultRig rig;
    {
      const FailingNew failing(n);
      rig.fails();
    }
    rig.check_idle();
    CHECK_FALSE(rig.fails());
    rig.check_idle();
    rig.check_end(0);
  }
}
