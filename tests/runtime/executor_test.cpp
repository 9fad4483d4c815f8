// SPDX-License-Identifier: Apache-2.0
// What every executor promises, over each of ebb's. [rt.exec]
#include "support/executor_choice.h"

#include <ebb/runtime/interop/tbb.h>
#include <ebb/runtime/parallel.h>
#include <ebb/runtime/runtime.h>

#include <doctest/doctest.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace ebb;

namespace {

struct Jthreads {
  static std::unique_ptr<Executor> make(unsigned threads) {
    return make_jthread_executor("test", threads);
  }
};
struct Arena {
  static std::unique_ptr<Executor> make(unsigned threads) {
    return make_tbb_executor("test", threads, {});
  }
};
struct BorrowedArena {
  static std::unique_ptr<Executor> make(unsigned threads) {
    static tbb::task_arena arena(static_cast<int>(threads));
    return borrow_arena(arena);
  }
};

// ThreadSanitizer cannot see into TBB: its runs ask for jthreads only.
template <class Kind>
bool is_left_out() {
  return ebb::test::executor_choice() == ExecutorKind::jthread && !std::is_same_v<Kind, Jthreads>;
}

class CountingTask final : public Task {
 public:
  explicit CountingTask(std::atomic<int>& count) : count_(&count) {}

 private:
  void run() noexcept override { count_->fetch_add(1); }
  std::atomic<int>* count_;
};

}  // namespace

TEST_CASE_TEMPLATE("executor: every task runs once, those that are queued at the end too", Kind,
                   Jthreads, Arena, BorrowedArena) {
  if (is_left_out<Kind>()) {
    return;
  }
  for (const unsigned threads : {1u, 2u, 4u}) {
    std::atomic<int> count{0};
    std::vector<std::unique_ptr<CountingTask>> tasks;
    {
      const auto executor = Kind::make(threads);
      CHECK(executor->concurrency() >= 1);
      for (int i = 0; i < 500; ++i) {
        tasks.push_back(std::make_unique<CountingTask>(count));
        executor->submit(*tasks.back());
      }
    }
    CHECK(count == 500);
  }
}

TEST_CASE_TEMPLATE("executor: run_one runs a queued task on the calling thread", Kind, Jthreads,
                   Arena) {
  if (is_left_out<Kind>()) {
    return;
  }
  const auto executor = Kind::make(1);  // no workers: only the caller can run it
  CHECK_FALSE(executor->run_one());
  std::atomic<int> count{0};
  CountingTask task(count);
  executor->submit(task);
  CHECK(count == 0);
  CHECK(executor->run_one());
  CHECK(count == 1);
  CHECK_FALSE(executor->run_one());
}

TEST_CASE_TEMPLATE("parallel_for: covers every index once, whatever the sizes", Kind, Jthreads,
                   Arena, BorrowedArena) {
  if (is_left_out<Kind>()) {
    return;
  }
  const auto executor = Kind::make(3);
  for (const std::int64_t count : {0, 1, 2, 7, 64, 1000}) {
    for (const std::int64_t grain : {1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
      parallel_for(*executor, count, grain, [&](std::int64_t begin, std::int64_t end) {
        CHECK((end - begin >= grain || end == count));
        for (std::int64_t i = begin; i < end; ++i) {
          hits[static_cast<std::size_t>(i)].fetch_add(1);
        }
      });
      for (const auto& hit : hits) {
        CHECK(hit == 1);
      }
    }
  }
}

TEST_CASE_TEMPLATE("parallel_for: the first exception of a body comes out, after all have ended",
                   Kind, Jthreads, Arena) {
  if (is_left_out<Kind>()) {
    return;
  }
  const auto executor = Kind::make(3);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> inside{0};
    CHECK_THROWS_WITH_AS(parallel_for(*executor, 100, 1,
                                      [&](std::int64_t begin, std::int64_t) {
                                        ++inside;
                                        if (begin >= 50) {
                                          --inside;
                                          throw std::runtime_error("body");
                                        }
                                        --inside;
                                      }),
                         "body", std::runtime_error);
    CHECK(inside == 0);
  }
}

TEST_CASE_TEMPLATE("parallel_for: nests, and bodies run under the caller's owner", Kind, Jthreads,
                   Arena) {
  if (is_left_out<Kind>()) {
    return;
  }
  Runtime rt;
  const auto executor = Kind::make(3);
  const Owner mine = rt.domain()->long_lived();
  const OwnerScope scope(mine);
  std::atomic<std::int64_t> sum{0};
  std::atomic<int> foreign{0};
  parallel_for(*executor, 20, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      parallel_for(*executor, 10, 1, [&](std::int64_t b, std::int64_t e) {
        sum += e - b;
        foreign += Owner::current_or_none() == mine ? 0 : 1;
      });
    }
  });
  CHECK(sum == 200);
  CHECK(foreign == 0);
}

TEST_CASE("parallel_for: a negative count or a grain of 0 is refused") {
  const auto executor = make_jthread_executor("test", 1);
  const auto body = [](std::int64_t, std::int64_t) {};
  CHECK_THROWS_AS(parallel_for(*executor, -1, 1, body), std::invalid_argument);
  CHECK_THROWS_AS(parallel_for(*executor, 1, 0, body), std::invalid_argument);
}

TEST_CASE("executor: jthread workers are named, and none is there before the first task") {
  const auto executor = make_jthread_executor("ebb/test", 2);
  std::atomic<int> done{0};
  class NameTask final : public Task {
   public:
    explicit NameTask(std::atomic<int>& done) : done_(&done) {}
    char name[16] = "";

   private:
    void run() noexcept override {
      pthread_getname_np(pthread_self(), name, sizeof name);
      *done_ = 1;
    }
    std::atomic<int>* done_;
  } task(done);
  executor->submit(task);
  while (done == 0) {
    std::this_thread::yield();
  }
  CHECK(std::string(task.name) == "ebb/test-0");
}

TEST_CASE("executor: more TBB threads than the process allows are clamped, and that is logged") {
  if (is_left_out<Arena>()) {
    return;
  }
  std::string said;
  const auto executor =
      make_tbb_executor("ebb/load", 100000, [&](LogLevel, std::string_view text) { said = text; });
  CHECK(executor->concurrency() < 100000);
  CHECK(said.find("ebb/load: 100000 threads were asked for") == 0);
}
