// SPDX-License-Identifier: Apache-2.0
// Raw TBB loops of a host under an ArenaOwner: zero mis-tagged storages, and none of its owners is
// left on a worker. ThreadSanitizer cannot see into TBB, so its runs leave these out. [gc.owner]
#include "arena_tagging.h"
#include "support/executor_choice.h"
#include "support/sanitized.h"
#include "tagging.h"

#include <ebb/gc/fallback_owner.h>
#include <ebb/runtime/parallel.h>

#include <doctest/doctest.h>
#include <tbb/task_group.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#ifdef EBB_TEST_SANITIZED
// TBB keeps its record of a thread's last observer until the thread meets another one or leaves the
// arena: the last ones are still there when the process ends.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:tbb::detail::r1::observe\n";
}
#endif

using namespace ebb;
using namespace ebb::test;

namespace {

constexpr int repeats = 100;

bool is_left_out() {
  return executor_choice() != ExecutorKind::tbb;
}

// What an ArenaOwner would be that counts on TBB to say that a thread leaves.
class Trusting final : public tbb::task_scheduler_observer {
 public:
  Trusting(tbb::task_arena& arena, Owner owner)
      : tbb::task_scheduler_observer(arena), fallback_(kept(owner)) {
    observe(true);
  }
  Trusting(const Trusting&) = delete;
  Trusting& operator=(const Trusting&) = delete;
  Trusting(Trusting&&) = delete;
  Trusting& operator=(Trusting&&) = delete;
  ~Trusting() override { observe(false); }

  void on_scheduler_entry(bool /*is_worker*/) override { fallback_.enter(); }
  void on_scheduler_exit(bool /*is_worker*/) override { fallback_.leave(); }

  static std::vector<std::unique_ptr<FallbackOwner>>& all() {
    static std::vector<std::unique_ptr<FallbackOwner>> made;
    return made;
  }

 private:
  static FallbackOwner& kept(Owner owner) {
    return *all().emplace_back(std::make_unique<FallbackOwner>(owner, "Trusting"));
  }
  FallbackOwner& fallback_;
};

// Takes a task arena's part and does nothing: what a host has without ebb's help.
struct Nothing {
  Nothing(tbb::task_arena& /*arena*/, Owner /*owner*/) {}
};

// A runtime with a loop, and what its threads charged.
struct Rig {
  Runtime rt{silent_on_tbb()};
  Loop loop{rt};
  Tally tally;
};

}  // namespace

TEST_CASE_FIXTURE(Rig, "arena owner: workers charge to it, and to nobody once it has ended") {
  if (is_left_out()) {
    return;
  }
  tbb::task_arena arena(4);
  for (int i = 0; i < repeats; ++i) {
    tag_then_leave<ArenaOwner>(loop, arena, tally);
  }
  CHECK(tally.made() == repeats * 32);
  CHECK(tally.wrong() == 0);
  CHECK(rt.stats().storages_unowned == 0);
  CHECK(rt.stats().storages_late == 0);
}

TEST_CASE_FIXTURE(
    Rig, "arena owner: without one, and with one that trusts TBB's exits, that count is not zero") {
  if (is_left_out()) {
    return;
  }
  tbb::task_arena arena(4);
  Tally without;
  Tally trusting;
  for (int i = 0; i < repeats; ++i) {
    tag_then_leave<Nothing>(loop, arena, without);
    tag_then_leave<Trusting>(loop, arena, trusting);
  }
  CHECK(without.wrong() > 0);
  CHECK(trusting.wrong() > 0);
  Trusting::all().clear();  // ends them: workers keep nothing of this runtime
}

TEST_CASE_FIXTURE(Rig, "arena owner: of the arena that the calling thread's loops run in") {
  if (is_left_out()) {
    return;
  }
  for (int i = 0; i < repeats; ++i) {
    {
      Iteration it(loop);
      const ArenaOwner with(it);
      loop_with_worker([&] { tally.make(rt, it); });
    }
    loop_with_worker([&] { tally.expect_none(); });
  }
  CHECK(tally.wrong() == 0);
}

TEST_CASE_FIXTURE(Rig,
                  "arena owner: the calling thread charges to it too, whatever it had before") {
  if (is_left_out()) {
    return;
  }
  tbb::task_arena arena(2);
  Iteration outer(loop);
  Iteration inner(loop);
  {
    const ArenaOwner with(arena, outer);
    tally.make(rt, outer);
    arena.execute([&] { loop_with_worker([&] { tally.make(rt, outer); }); });
  }
  tally.make(rt, inner);
  CHECK(tally.wrong() == 0);
}

TEST_CASE_FIXTURE(Rig, "arena owner: one made amid a raw loop, for a loop nested in it") {
  if (is_left_out()) {
    return;
  }
  tbb::task_arena outer(4);
  tbb::task_arena inner(2);
  for (int i = 0; i < repeats; ++i) {
    Iteration it(loop);
    Iteration nested(loop);
    const ArenaOwner with(outer, it);
    outer.execute([&] {
      loop_with_worker([&] {
        tally.make(rt, it);
        {
          const ArenaOwner within(inner, nested);
          inner.execute([&] { tbb::parallel_for(0, 8, [&](int) { tally.make(rt, nested); }); });
        }
        tally.make(rt, it);
      });
    });
  }
  CHECK(tally.wrong() == 0);
}

TEST_CASE_FIXTURE(Rig, "arena owner: one worker serves two arenas in turn, each with its owner") {
  if (is_left_out()) {
    return;
  }
  Runtime other(silent_on_tbb());
  Loop other_loop(other);
  tbb::task_arena first(2);
  tbb::task_arena second(2);
  for (int i = 0; i < repeats; ++i) {
    Iteration it(loop);
    const ArenaOwner with(first, it);
    std::jthread([&] {
      Iteration its(other_loop);
      const ArenaOwner with_other(second, its);
      for (int turn = 0; turn < 2; ++turn) {
        first.execute(
            [&] { tbb::parallel_for(0, 8, carry([&](int) { tally.make(other, its); })); });
        second.execute([&] { loop_with_worker([&] { tally.make(other, its); }); });
      }
    }).join();
    first.execute([&] { loop_with_worker([&] { tally.make(rt, it); }); });
  }
  CHECK(tally.wrong() == 0);
  CHECK(rt.stats().storages_unowned + other.stats().storages_unowned == 0);
}

TEST_CASE_FIXTURE(
    Rig, "arena owner: raw loops within tasks of ebb's, and tasks of ebb's within raw loops") {
  if (is_left_out()) {
    return;
  }
  tbb::task_arena arena(4);
  for (int i = 0; i < repeats; ++i) {
    Iteration it(loop);
    const ArenaOwner with(arena, it);
    parallel_for(rt.step_executor(), 8, 1, [&](std::int64_t, std::int64_t) {
      arena.execute([&] { tbb::parallel_for(0, 8, [&](int) { tally.make(rt, it); }); });
    });
    arena.execute([&] {
      tbb::parallel_for(0, 8, [&](int) {
        parallel_for(rt.step_executor(), 8, 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t k = begin; k < end; ++k) {
            tally.make(rt, it);
          }
        });
      });
    });
  }
  CHECK(tally.wrong() == 0);
  CHECK(rt.stats().storages_unowned == 0);
}

TEST_CASE_FIXTURE(Rig,
                  "carry: raw loops within tasks of ebb's, and tasks of ebb's within raw loops") {
  if (is_left_out()) {
    return;
  }
  for (int i = 0; i < repeats; ++i) {
    Iteration it(loop);
    parallel_for(rt.step_executor(), 8, 1, [&](std::int64_t, std::int64_t) {
      tbb::parallel_for(0, 8, carry([&](int) { tally.make(rt, it); }));
    });
    tbb::parallel_for(0, 8, carry([&](int) {
                        parallel_for(rt.step_executor(), 8, 1,
                                     [&](std::int64_t, std::int64_t) { tally.make(rt, it); });
                      }));
  }
  CHECK(tally.wrong() == 0);
  CHECK(rt.stats().storages_unowned == 0);
}

TEST_CASE("arena owner: a loader's tasks in the same arena stay the loader's") {
  if (is_left_out()) {
    return;
  }
  constexpr int loader_tasks = 200;
  SharedArena shared;
  Tally tally;
  std::atomic<int> mistagged{0};
  for (int i = 0; i < repeats; ++i) {
    std::atomic<int> done{0};
    std::deque<LoaderTask> tasks;
    Iteration it(shared.loop);
    const ArenaOwner with(shared.arena, it);
    for (int k = 0; k < loader_tasks; ++k) {
      const OwnerScope scope(shared.loader);
      shared.executor->submit(tasks.emplace_back(shared.loader, mistagged, done));
    }
    while (done < loader_tasks) {
      shared.arena.execute(
          [&] { tbb::parallel_for(0, 16, [&](int) { tally.make(shared.rt, it); }); });
    }
  }
  CHECK(mistagged == 0);
  CHECK(tally.wrong() == 0);
}

TEST_CASE("arena owner: what workers make goes back, and they keep no heap") {
  if (is_left_out()) {
    return;
  }
  tbb::task_arena arena(4);
  for (int i = 0; i < 20; ++i) {
    std::weak_ptr<Domain> domain;
    {
      Runtime rt(silent_on_tbb());
      domain = rt.domain();
      Loop loop(rt);
      Iteration it(loop);
      const ArenaOwner with(arena, it);
      arena.execute([&] { loop_with_worker([&] { (void)zeros({100}); }); });
    }
    CHECK(domain.expired());  // a heap on a worker would keep it
  }
}

TEST_CASE("arena owner: an empty owner is refused, and a body without one is told the remedy") {
  if (is_left_out()) {
    return;
  }
  tbb::task_arena arena(2);
  CHECK_THROWS_WITH_AS(ArenaOwner(arena, Owner{}), "[ArenaOwner] the owner is empty",
                       std::invalid_argument);
  const auto body = [](int) { (void)zeros({4}); };
  CHECK_THROWS_WITH_AS(arena.execute([&] { tbb::parallel_for(0, 4, body); }),
                       doctest::Contains("[zeros] this thread has no owner"),
                       std::invalid_argument);
}

TEST_CASE("carry: two owners share an arena with one place, and execute lends its thread") {
  if (is_left_out()) {
    return;
  }
  Runtime rt(silent_on_tbb());
  tbb::task_arena arena(1);
  Tally tally;
  const auto host = [&] {
    Loop loop(rt);
    for (int i = 0; i < repeats; ++i) {
      Iteration it(loop);
      arena.execute(carry([&] {
        tbb::task_group group;
        group.run(carry([&] { tally.make(rt, it); }));
        tally.make(rt, it);
        group.wait();
        tally.make(rt, it);
      }));
    }
  };
  {
    std::jthread one(host);
    std::jthread two(host);
  }
  CHECK(tally.made() == 2 * repeats * 3);
  CHECK(tally.wrong() == 0);
}
