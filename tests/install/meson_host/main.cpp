// SPDX-License-Identifier: Apache-2.0
// A host built with Meson that owns a TBB arena, and finds it unchanged after using ebb.
// An install test, and a model for hosts. Main thread.
#include <ebb/alloc/version.h>

#include <tbb/task_arena.h>

#include <cstdio>

int main() {
  tbb::task_arena arena(1);
  arena.initialize();
  std::printf("ebb %s under Meson\n", ebb::version());
  if (arena.max_concurrency() != 1) {
    std::puts("ebb changed the host's arena");
    return 1;
  }
  return 0;
}
