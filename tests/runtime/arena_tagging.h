// SPDX-License-Identifier: Apache-2.0
// Raw TBB loops of a host, as programs that count storages charged to the wrong owner. Used by the
// tests of ArenaOwner and by the proof that they can fail. [gc.owner]
#pragma once

#include <ebb/runtime/interop/tbb.h>
#include <ebb/runtime/loop.h>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

namespace ebb::test {

inline RuntimeOptions silent_on_tbb() {
  return {.threads = 2, .log = [](LogLevel, std::string_view) {}};
}

// Counts storages, and those that went to somebody else. Any thread.
class Tally {
 public:
  // Makes a storage as code does that knows no owner: rt is for where there is none.
  void make(Runtime& rt, const Owner& expected) {
    const Tensor made = empty(rt, {16});
    ++made_;
    wrong_ += made.storage().owner_record() == expected.record() ? 0 : 1;
  }
  // The same where this thread must have no owner of ours.
  void expect_none() {
    ++made_;
    wrong_ += Owner::current_or_none() ? 1 : 0;
  }
  int made() const { return made_; }
  int wrong() const { return wrong_; }

 private:
  std::atomic<int> made_{0};
  std::atomic<int> wrong_{0};
};

// A raw loop whose first two bodies meet, so that a worker takes part: waits 100 ms at most.
template <class Body>
void loop_with_worker(const Body& body) {
  std::atomic<int> inside{0};
  tbb::parallel_for(
      tbb::blocked_range<int>(0, 16, 1),
      [&](const tbb::blocked_range<int>& part) {
        ++inside;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
        while (inside < 2 && std::chrono::steady_clock::now() < limit) {
          std::this_thread::yield();
        }
        for (int i = part.begin(); i < part.end(); ++i) {
          body();
        }
      },
      tbb::simple_partitioner());
}

// A raw loop in arena under an owner as Guard charges it, then one of the host's own in the same
// arena, while workers still linger in it.
template <class Guard>
void tag_then_leave(Loop& loop, tbb::task_arena& arena, Tally& tally) {
  {
    Iteration it(loop);
    const Guard guard(arena, it.owner());
    arena.execute([&] { loop_with_worker([&] { tally.make(loop.runtime(), it.owner()); }); });
  }
  arena.execute([&] { loop_with_worker([&] { tally.expect_none(); }); });
}

}  // namespace ebb::test
