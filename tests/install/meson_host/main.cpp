// SPDX-License-Identifier: Apache-2.0
// A host built with Meson that owns a TBB arena: it trains inside that arena, with ebb's own
// executors beside it, and finds the arena as it was. An install test and a model for hosts.
#include <ebb/ebb.h>

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

namespace {

std::uint64_t train() {
  ebb::Runtime rt({.threads = 2});
  ebb::Loop loop(rt, {.name = "meson_host"});
  for (int step = 0; step < 20; ++step) {
    ebb::Iteration it(loop);
    ebb::Tensor x = ebb::empty({1000});
    float* values = x.data<float>();
    ebb::parallel_for(rt.step_executor(), 1000, 100, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        values[i] = 1;
      }
    });
  }
  loop.finish();
  return loop.stats().stragglers == 0 ? loop.stats().iterations : 0;
}

// What the host itself does in its arena, before and after ebb.
int threads_in(tbb::task_arena& arena) {
  std::atomic<int> most{0};
  arena.execute([&] {
    tbb::parallel_for(0, 100, [&](int) { most = tbb::this_task_arena::max_concurrency(); });
  });
  return most;
}

}  // namespace

int main() {
  tbb::task_arena arena(1);
  const int before = threads_in(arena);
  std::uint64_t iterations = 0;
  arena.execute([&] { iterations = train(); });
  if (iterations != 20) {
    std::puts("the loop did not close its 20 iterations clean");
    return 1;
  }
  if (arena.max_concurrency() != 1 || threads_in(arena) != before) {
    std::puts("ebb changed the host's arena");
    return 1;
  }
  std::printf("ebb %s under Meson, in the host's arena\n", ebb::version());
  return 0;
}
