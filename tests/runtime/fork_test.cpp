// SPDX-License-Identifier: Apache-2.0
// A process forked while a runtime is in use: the child's calls throw, its releases and destructors
// do nothing and never hang, and the parent goes on unharmed. [rt.fork]
#include "support/child.h"
#include "support/executor_choice.h"
#include "support/sanitized.h"

#include <ebb/alloc/file_source.h>
#include <ebb/alloc/fork.h>
#include <ebb/ebb.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::exited_with_0;
using ebb::test::run_in_child;

// What only a thread of the parent's held, on its stack or in TBB's memory, looks leaked in a
// child.
extern "C" int __lsan_is_turned_off();  // NOLINT(bugprone-reserved-identifier)
extern "C" int __lsan_is_turned_off() {
  return ebb::detail::is_forked_child() ? 1 : 0;
}

namespace {

constexpr unsigned child_deadline_s = 60;

// Left to the end of the process, of the child's too.
Tensor static_tensor;  // NOLINT(cert-err58-cpp)

// Loads slowly, so that a fork meets a batch half filled.
struct Slowly {
  struct Local {};

  std::uint64_t size() const { return 1000; }
  std::uint64_t fingerprint() const { return 1; }
  std::string name() const { return "slowly"; }
  Schema schema() const { return {{{"x", DType::f32, {256}}}}; }
  void load(std::uint64_t index, Local& /*local*/, const SampleContext& /*context*/,
            SampleWriter& writer) const {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    for (float& x : writer.field<float>(0)) {
      x = static_cast<float>(index);
    }
  }
};

// Goes through what is said about a child, and says what does not hold.
class Findings {
 public:
  void expect(bool holds, std::string_view what) {
    if (!holds) {
      std::fprintf(stderr, "in the child: %.*s\n", static_cast<int>(what.size()), what.data());
      ++wrong_;
    }
  }
  template <class F>
  void expect_forked(std::string_view name, F call) {
    try {
      call();
      expect(false, std::string(name) + " did not throw");
    } catch (const ForkedError& error) {
      expect(std::string_view(error.what()).substr(0, 1) == "[", error.what());
    } catch (const std::exception& error) {
      expect(false, std::string(name) + " threw: " + error.what());
    }
  }
  int status() const { return wrong_ == 0 ? 0 : 1; }

 private:
  int wrong_ = 0;
};

// A runtime in the middle of everything. Destroyed member by member, the last first.
struct Busy {
  explicit Busy(Source* source = nullptr)
      : rt(std::make_unique<Runtime>(RuntimeOptions{.threads = 3,
                                                    .executor = ebb::test::executor_choice(),
                                                    .source = source,
                                                    .log = [](LogLevel, std::string_view) {}})),
        loop(std::make_unique<Loop>(*rt, LoopOptions{.deadline = Milliseconds(100)})),
        loader(std::make_unique<Loader>(*rt, Slowly{}, LoaderOptions{.batch = 16, .workers = 2})),
        executor(make_jthread_executor("own", 2)),
        batch(loader->next()),
        kept(full(*rt, {1000}, 3)),
        it(std::make_unique<Iteration>(*loop)),
        temporary(full({1000}, 4)),
        text(full({1}, 0)),
        weak(temporary.storage()),
        call(bind(std::function<void()>([this] { ++calls; }))),
        numbers(std::make_unique<std::pmr::vector<int>>(100, 7, it->resource())) {
    Storage storage = temporary.storage();
    storage.add_finalizer([](void* count) noexcept { ++*static_cast<int*>(count); }, &finalized);
    parallel_for(rt->step_executor(), 100, 1, [](std::int64_t, std::int64_t) {});
    parallel_for(*executor, 100, 1, [](std::int64_t, std::int64_t) {});
    raw = it->raw().allocate(100);
  }

  void drop_all() {
    numbers.reset();
    call.reset();
    weak = WeakStorage();
    text = temporary = Tensor();
    it.reset();
    kept = Tensor();
    batch.reset();
    executor.reset();
    loader.reset();
    loop.reset();
    rt.reset();
  }

  int finalized = 0;
  int calls = 0;
  std::unique_ptr<Runtime> rt;
  std::unique_ptr<Loop> loop;
  std::unique_ptr<Loader> loader;
  std::unique_ptr<Executor> executor;
  std::optional<Batch> batch;
  Tensor kept;
  std::unique_ptr<Iteration> it;
  Tensor temporary;
  Tensor text;
  WeakStorage weak;
  std::optional<Bound<std::function<void()>>> call;
  std::unique_ptr<std::pmr::vector<int>> numbers;
  char* raw = nullptr;
};

struct Nothing final : Task {
  void run() noexcept override {}
};

void call_runtime(Findings& f, Busy& b) {
  Nothing task;
  f.expect_forked("step_executor", [&] { b.rt->step_executor(); });
  f.expect_forked("load_executor", [&] { b.rt->load_executor(1); });
  f.expect_forked("submit", [&] { b.executor->submit(task); });
  f.expect_forked("parallel_for",
                  [&] { parallel_for(*b.executor, 100, 1, [](std::int64_t, std::int64_t) {}); });
  f.expect(!b.executor->run_one(), "run_one ran something");
  f.expect(b.rt->memory().heaps == 0 && b.rt->trim() == 0_B, "figures of the parent's heaps");
  f.expect(b.rt->stats().storages_live == 0, "figures of the parent's storages");
  f.expect_forked("Loop", [&] { const Loop loop(*b.rt); });
  f.expect_forked("make_pool", [&] { b.rt->domain()->make_pool("pool", 0_B); });
  f.expect_forked("Loader", [&] { const Loader loader(*b.rt, Slowly{}); });
}

void call_loop(Findings& f, Busy& b) {
  f.expect_forked("Iteration", [&] { const Iteration it(*b.loop); });
  f.expect_forked("finish", [&] { b.loop->finish(); });
  f.expect_forked("over", [&] { const auto steps = b.loop->over(*b.loader); });
  f.expect_forked("wait_plan", [&] { b.loop->wait_plan(); });
  f.expect_forked("plans", [&] { b.loop->plans(); });
  f.expect_forked("save_plans", [&] { b.loop->save_plans("/nowhere/plans"); });
  f.expect_forked("load_plans", [&] { b.loop->load_plans("/nowhere/plans"); });
  f.expect_forked("logged", [&] { b.loop->logged(); });
  f.expect(b.loop->stats().iterations == 0, "figures of the parent's loop");
  f.expect_forked("close", [&] { b.it->close(); });
  f.expect_forked("allocate", [&] { static_cast<void>(b.it->allocate(10_B)); });
  f.expect_forked("keep", [&] { static_cast<void>(b.it->keep(b.temporary)); });
  f.expect_forked("keep_copy", [&] { static_cast<void>(b.it->keep_copy(b.temporary)); });
  f.expect_forked("resource", [&] { b.it->resource(); });
  f.expect_forked("raw", [&] { b.it->raw().allocate(10); });
  f.expect_forked("raw free", [&] { b.it->raw().deallocate(b.raw, 100); });
  f.expect_forked("log", [&] { b.it->log("x", 1); });
  f.expect_forked("spawn", [&] { b.it->spawn([] {}); });
  f.expect_forked("next", [&] { b.loader->next(); });
  f.expect_forked("begin_epoch", [&] { b.loader->begin_epoch(1); });
  f.expect_forked("restore", [&] { b.loader->restore(b.loader->state()); });
  f.expect(b.loader->stats().slots == 0, "figures of the parent's loader");
}

void call_tensors(Findings& f, Busy& b) {
  f.expect_forked("zeros of the runtime", [&] { zeros(*b.rt, {10}); });
  f.expect_forked("zeros of the iteration", [&] { zeros(*b.it, {10}); });
  f.expect_forked("zeros of the thread", [&] { zeros({10}); });
  f.expect_forked("strings", [&] { empty(*b.rt, {10}, DType::string); });
  f.expect_forked("clone", [&] { static_cast<void>(b.kept.clone(*b.rt)); });
  f.expect_forked("keep", [&] { static_cast<void>(keep(b.temporary, *b.rt)); });
  f.expect_forked("resize", [&] { Storage(b.kept.storage()).resize(10_B); });
  f.expect_forked("add_finalizer",
                  [&] { Storage(b.kept.storage()).add_finalizer([](void*) noexcept {}, nullptr); });
  f.expect_forked("bound function", [&] { (*b.call)(); });
  f.expect(b.kept.data<const float>()[999] == 3, "the parent's tensors cannot be read");
  f.expect(b.numbers->at(99) == 7, "the parent's containers cannot be read");
}

int in_child(Busy& b) {
  Findings f;
  call_runtime(f, b);
  call_loop(f, b);
  call_tensors(f, b);
  b.drop_all();
  f.expect(b.finalized == 0, "a finalizer ran");
  f.expect(b.calls == 0, "a bound function ran");
  return f.status();
}

int make_own_runtime() {
  Findings f;
  Runtime rt({.threads = 2, .executor = ebb::test::executor_choice()});
  Loop loop(rt);
  Loader loader(rt, Slowly{}, {.batch = 100, .workers = 1});
  std::uint64_t samples = 0;
  for (auto& step : loop.over(loader)) {
    auto [x] = step.fields<1>();
    const Tensor sum = full({10}, 2);
    std::atomic<std::int64_t> seen{0};
    parallel_for(rt.step_executor(), 100, 1,
                 [&](std::int64_t begin, std::int64_t end) { seen += end - begin; });
    f.expect(seen == 100, "parallel_for in the child's own runtime");
    samples += static_cast<std::uint64_t>(x.size(0));
  }
  f.expect(samples == 1000, "a loader in the child's own runtime");
  return f.status();
}

}  // namespace

TEST_CASE("fork: the child's calls throw, its destructors do nothing, and the parent goes on") {
  Busy b;
  static_tensor = keep(full({10}, 5), *b.rt);
  for (int round = 0; round < 10; ++round) {
    b.batch.reset();
    b.batch = b.loader->next();  // its worker is busy with the next one
    CHECK(exited_with_0(run_in_child([&] { return in_child(b); }, child_deadline_s)));
  }
  CHECK(b.finalized == 0);
  CHECK(b.kept.data<const float>()[999] == 3);
  (*b.call)();
  CHECK(b.calls == 1);
  b.it->raw().deallocate(b.raw, 100);
  b.numbers.reset();
  b.text = b.temporary = Tensor();
  CHECK(b.finalized == 1);
  CHECK(b.weak.lock().use_count() == 0);
  CHECK(b.it->close().clean());
  b.batch.reset();
  CHECK(b.loader->next().has_value());
  b.drop_all();
  CHECK(static_tensor.data<const float>()[9] == 5);
}

TEST_CASE("fork: a child that only exits, static objects included") {
  Busy b;
  CHECK(exited_with_0(run_in_child([] { return 0; }, child_deadline_s)));
}

TEST_CASE("fork: a runtime that the child makes works") {
  if (ebb::test::is_sanitized()) {
    MESSAGE("skipped: sanitizers have locks too, which hang threads that such a child starts");
    return;
  }
  Busy b;
  CHECK(exited_with_0(run_in_child(
      [&] {
        const int status = make_own_runtime();
        return status == 0 ? in_child(b) : status;  // the parent's is still refused
      },
      child_deadline_s)));
  // And so does one of its own child.
  CHECK(exited_with_0(run_in_child(
      [&] {
        const Busy own;
        const int status = run_in_child([] { return make_own_runtime(); }, child_deadline_s);
        return exited_with_0(status) ? make_own_runtime() : 1;
      },
      child_deadline_s)));
}

TEST_CASE("fork: pages that the child shares with its parent stay the parent's") {
  SharedMemorySource source;
  Busy b(&source);
  CHECK(exited_with_0(run_in_child([&] { return in_child(b); }, child_deadline_s)));
  CHECK(b.kept.data<const float>()[0] == 3);
  CHECK(b.temporary.data<const float>()[999] == 4);
  for (const int number : *b.numbers) {
    CHECK(number == 7);
  }
  CHECK(b.numbers->get_allocator().resource() == b.it->resource());
  b.it->raw().deallocate(b.raw, 100);
  b.numbers.reset();
  (*b.call)();
  b.text = b.temporary = Tensor();
  CHECK(b.it->close().clean());
}

TEST_CASE("fork: heaps and pools of their own are refused in the child as well") {
  Pool pool(system_source(), {.name = "alone"});
  Heap& heap = pool.acquire();
  DataPtr block = own_block(heap.allocate(100_B));
  CHECK(exited_with_0(run_in_child(
      [&] {
        Findings f;
        f.expect_forked("acquire", [&] { pool.acquire(); });
        f.expect_forked("allocate", [&] { heap.allocate(100_B); });
        f.expect(!heap.try_allocate(100_B), "a block of the parent's heap");
        block.reset();
        f.expect(heap.stats().blocks_live == 1, "a block was freed");
        Pool::park(heap);
        const Pool gone = std::move(pool);
        return f.status();
      },
      child_deadline_s)));
  block.reset();
  CHECK(heap.stats().blocks_live == 0);
  Pool::park(heap);
}
