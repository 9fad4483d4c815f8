// SPDX-License-Identifier: Apache-2.0
// Everything that hangs off a runtime, destroyed in any order and on any thread; guards whose
// thread or runtime has gone. [rt.exit]
#include "support/executor_choice.h"

#include <ebb/ebb.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;

namespace {

std::uint64_t seed() {
  const char* const text = std::getenv("EBB_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20240607;
}

// Destroyed at the end of the process, after all tests.
Tensor static_tensor;                                    // NOLINT(cert-err58-cpp)
std::vector<std::unique_ptr<Runtime>> left_to_the_exit;  // NOLINT(cert-err58-cpp)
std::array<Iteration*, 2> leaked{};  // never destroyed, so that leak checkers see them

class Lines {
 public:
  LogHook hook() {
    return [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex_);
      text_ += text;
    };
  }
  bool contain(std::string_view part) {
    const std::lock_guard lock(mutex_);
    return text_.find(part) != std::string::npos;
  }

 private:
  std::mutex mutex_;  // guards text_
  std::string text_;
};

std::unique_ptr<Runtime> make_runtime(LogHook log = [](LogLevel, std::string_view) {}) {
  return std::make_unique<Runtime>(RuntimeOptions{
      .threads = 2, .executor = ebb::test::executor_choice(), .log = std::move(log)});
}

LoopOptions quick() {
  return {.deadline = Milliseconds(2)};
}

struct Ones {
  struct Local {};
  std::uint64_t size() const { return 64; }
  std::uint64_t fingerprint() const { return 1; }
  std::string name() const { return "ones"; }
  Schema schema() const { return {{{"x", DType::f32, {16}}}}; }
  void load(std::uint64_t /*index*/, Local& /*local*/, const SampleContext& /*context*/,
            SampleWriter& writer) const {
    for (float& x : writer.field<float>(0)) {
      x = 1;
    }
  }
};

// Counts how often it was released.
std::atomic<int> released{0};
std::atomic<int> finalized{0};
constexpr PtrOps counted_ops{[](void*, void*) noexcept { ++released; }, "counted"};

// One of each, and how to destroy them, each on its own.
struct World {
  World() {
    static float foreign[4];
    kept = full(*rt, {100}, 1);
    Storage(kept.storage()).add_finalizer([](void*) noexcept { ++finalized; }, nullptr);
    strings = empty(*rt, {10}, DType::string);
    wrapped = Storage::wrap(*rt, DataPtr(foreign, nullptr, counted_ops, cpu), 16_B, {});
    batch = loader->next();
    it = std::make_unique<Iteration>(*loop);
    temporary = full({100}, 2);
    weak = WeakStorage(temporary.storage());
    call.emplace(bind(std::function<void()>([] { const Tensor late = zeros({10}); })));
    numbers = std::make_unique<std::pmr::vector<int>>(100, 7, it->resource());
    it->spawn([] { const Tensor t = zeros({10}); });
    other_it = std::make_unique<Iteration>(*other_loop);
    nested = full({100}, 3);
  }

  // The guards come before their loops: that is the one rule.
  std::vector<std::function<void()>> ends() {
    return {[this] { rt.reset(); },        [this] { loader.reset(); },
            [this] { executor.reset(); },  [this] { batch.reset(); },
            [this] { kept = Tensor(); },   [this] { strings = Tensor(); },
            [this] { wrapped.reset(); },   [this] { temporary = Tensor(); },
            [this] { nested = Tensor(); }, [this] { weak = WeakStorage(); },
            [this] { call.reset(); },      [this] { numbers.reset(); },
            [this] { it.reset(); },        [this] { other_it.reset(); },
            [this] { run_call(); },        [this] { next_batch(); },
            [this] { read_all(); }};
  }
  void end_loops() {
    loop.reset();
    other_loop.reset();
  }

  void run_call() {
    if (call.has_value()) {
      try {
        (*call)();
      } catch (const std::invalid_argument&) {  // the runtime has gone
      }
    }
  }
  void next_batch() {
    if (loader != nullptr) {
      try {
        std::optional<Batch> next = loader->next();
      } catch (const std::exception&) {  // the runtime has gone, or the slots are out
      }
    }
  }
  void read_all() {
    CHECK((!kept.defined() || kept.data<const float>()[99] == 1));
    CHECK((!temporary.defined() || temporary.data<const float>()[99] == 2));
    CHECK((!nested.defined() || nested.data<const float>()[99] == 3));
    CHECK((!batch.has_value() || batch->field(0).data<const float>()[0] == 1));
    CHECK((numbers == nullptr || numbers->at(99) == 7));
  }

  std::unique_ptr<Runtime> rt = make_runtime();
  std::unique_ptr<Loop> loop = std::make_unique<Loop>(*rt, quick());
  std::unique_ptr<Loop> other_loop = std::make_unique<Loop>(*rt, quick());
  std::unique_ptr<Loader> loader = std::make_unique<Loader>(
      *rt, Ones{}, LoaderOptions{.batch = 8, .workers = 1, .deadline = Milliseconds(100)});
  std::unique_ptr<Executor> executor = make_jthread_executor("own", 2);
  std::optional<Batch> batch;
  Tensor kept;
  Tensor strings;
  Storage wrapped;
  std::unique_ptr<Iteration> it;
  Tensor temporary;
  WeakStorage weak;
  std::optional<Bound<std::function<void()>>> call;
  std::unique_ptr<std::pmr::vector<int>> numbers;
  std::unique_ptr<Iteration> other_it;
  Tensor nested;
};

}  // namespace

TEST_CASE("exit: a world destroyed in 200 random orders, here and on other threads") {
  MESSAGE("EBB_TEST_SEED=" << seed());
  std::mt19937_64 random(seed());
  constexpr int orders = 200;
  for (int order = 1; order <= orders; ++order) {
    CAPTURE(order);
    World world;
    std::vector<std::function<void()>> ends = world.ends();
    std::shuffle(ends.begin() + (order % 3 == 0 ? 1 : 0), ends.end(), random);
    if (order % 3 == 1) {  // the runtime last, or never
      ends.emplace_back([&] { left_to_the_exit.push_back(std::move(world.rt)); });
      if (order % 20 != 1) {
        left_to_the_exit.clear();
      }
    }
    const std::size_t loops_end_at = random() % 4;
    for (const auto& end : ends) {
      if (random() % 3 == 0) {
        std::jthread(end).join();
      } else {
        end();
      }
      if (loops_end_at == 0 && world.it == nullptr && world.other_it == nullptr) {
        world.end_loops();
      }
    }
    world.end_loops();
    CHECK(released == order);
    CHECK(finalized == order);
  }
}

TEST_CASE("exit: a static tensor outlives its runtime to the end of the process") {
  const auto rt = make_runtime();
  static_tensor = full(*rt, {1000}, 4);
}

TEST_CASE("exit: a loop after its runtime opens nothing, and says so") {
  auto rt = make_runtime();
  Loop loop(*rt, quick());
  rt.reset();
  CHECK_THROWS_WITH_AS(Iteration(loop, Place::here()), doctest::Contains("[Iteration]"),
                       std::invalid_argument);
  CHECK(loop.stats().reserved == 0_B);
  loop.finish();
}

TEST_CASE("exit: a guard whose runtime has gone closes, jobs included") {
  auto rt = make_runtime();
  Loop loop(*rt, quick());
  Tensor tensor;
  std::optional<Bound<std::function<void()>>> never_called;
  {
    Iteration it(loop);
    tensor = full({10}, 6);
    never_called.emplace(bind(std::function<void()>([] {})));
    rt.reset();
  }
  CHECK(!Owner::current_or_none());
  CHECK(tensor.data<const float>()[9] == 6);
}

TEST_CASE("exit: a function bound to the runtime may be called twice after it has gone") {
  auto rt = make_runtime();
  std::optional<Bound<std::function<bool()>>> call;
  {
    const LongLived scope(*rt);
    call.emplace(bind(std::function<bool()>([] { return bool(Owner::current_or_none()); })));
    rt.reset();
  }
  CHECK((*call)());
  CHECK((*call)());
}

TEST_CASE("exit: a guard whose thread has ended is ended by another, which logs it") {
  Lines lines;
  const auto rt = make_runtime(lines.hook());
  Loop loop(*rt, quick());
  std::unique_ptr<Iteration> guard;
  Tensor tensor;
  std::jthread([&] {
    guard = std::make_unique<Iteration>(loop);
    tensor = full({10}, 7);
  }).join();
  guard.reset();
  CHECK(lines.contain("adopted 1 storages"));
  CHECK(tensor.storage().owner_kind() == OwnerKind::runtime);
  CHECK(tensor.data<const float>()[9] == 7);
  const Iteration next(loop);
}

TEST_CASE("exit: guards that nobody ends, of this thread and of one that has gone") {
  for (const bool here : {true, false}) {
    auto rt = make_runtime();
    auto loop = std::make_unique<Loop>(*rt, quick());
    Tensor tensor;
    const auto leak = [&] {
      leaked[here ? 0 : 1] = new Iteration(*loop);
      tensor = full({10}, 8);
    };
    if (here) {
      leak();
    } else {
      std::jthread(leak).join();
    }
    loop.reset();
    rt.reset();
    CHECK(tensor.data<const float>()[9] == 8);
    tensor = Tensor();
    const auto other = make_runtime();
    Loop other_loop(*other, quick());
    Iteration it(other_loop);
    CHECK(full({10}, 9).data<const float>()[9] == 9);
    CHECK(it.close().clean());
  }
}
