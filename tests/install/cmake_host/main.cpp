// SPDX-License-Identifier: Apache-2.0
// A host built with CMake that limits TBB by a global_control, and finds it unchanged after using
// ebb. An install test, and a model for hosts. Main thread.
#include <ebb/alloc/version.h>

#include <tbb/global_control.h>

#include <cstdio>

int main() {
  using Control = tbb::global_control;
  Control limit(Control::max_allowed_parallelism, 3);
  std::printf("ebb %s under CMake\n", ebb::version());
  if (Control::active_value(Control::max_allowed_parallelism) != 3) {
    std::puts("ebb changed the host's global_control");
    return 1;
  }
  return 0;
}
