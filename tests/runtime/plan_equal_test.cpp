// SPDX-License-Identifier: Apache-2.0
// The same random program with plans and without: what tensors hold, what is counted and what is
// reported are the same. [alloc.replay] [gc.report]
#include "support/executor_choice.h"
#include "support/test_settings.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace ebb;

namespace {

RuntimeOptions quiet(unsigned threads, std::string& log) {
  RuntimeOptions options;
  options.threads = threads;
  options.log = [&log](LogLevel, std::string_view text) { log.append(text).append("\n"); };
  options.executor = ebb::test::executor_choice();
  return options;
}

float end_of(const Tensor& tensor) {
  return tensor.data<const float>()[tensor.elements() - 1];
}

// One run of the program: everything random comes from the seed.
class Program {
 public:
  Program(std::uint64_t seed, bool plans)
      : random_(seed),
        policy_(static_cast<Policy>(random_() % 3)),
        rt_(quiet(1, log_)),
        loop_(rt_, options("outer", plans)),
        inner_(rt_, options("inner", plans)) {
    loop_.on_collect([this] { collect(); });
  }

  void run(int iterations) {
    for (int i = 0; i < iterations; ++i) {
      if (i == iterations / 2) {
        loop_.wait_plan();
        inner_.wait_plan();
      }
      one();
    }
    const LoopStats stats = loop_.stats();
    tell("iterations", stats.iterations);
    tell("stragglers", stats.stragglers);
    tell("inner", inner_.stats().iterations);
    tell("inner stragglers", inner_.stats().stragglers);
  }

  std::string told() const { return told_; }
  std::uint64_t followed() const {
    std::uint64_t sum = 0;
    for (const Loop* loop : {&loop_, &inner_}) {
      for (const LoopPlans& plans : loop->plans()) {
        sum += plans.stats.followed;
      }
    }
    return sum;
  }

 private:
  LoopOptions options(const char* name, bool plans) const {
    LoopOptions made;
    made.name = name;
    made.deadline = Milliseconds(0);
    made.policy = policy_;
    made.plans = plans;
    return made;
  }

  void tell(const char* what, std::uint64_t value) {
    told_.append(what).append(" ").append(std::to_string(value)).append("\n");
  }
  void tell(const char* what, const Tensor& tensor) {
    try {
      told_.append(what).append(" ").append(std::to_string(end_of(tensor))).append("\n");
    } catch (const std::exception& e) {
      told_.append(what).append(" ").append(e.what()).append("\n");
    }
  }
  void tell(const StragglerReport& report) {
    tell("report", report.iteration);
    tell("action", static_cast<std::uint64_t>(report.action));
    tell("count", report.count);
    tell("bytes", report.bytes.count());
    tell("revoked", report.revoked_count);
    tell("jobs", report.jobs);
    for (const StragglerPlace& place : report.places) {
      tell("place", place.place.line);
      tell("  of storages", place.count);
      tell("  of bytes", place.bytes.count());
      tell("  streak", place.streak);
      tell("  earlier", place.earlier_count);
      tell("  earlier bytes", place.earlier_bytes.count());
      tell("  age", place.age);
      tell("  waited", place.waited ? 1 : 0);
    }
  }
  void tell(const CloseResult& result) {
    tell("stragglers", result.stragglers);
    tell("bytes", result.straggler_bytes.count());
    tell("revoked", result.revoked);
    tell("jobs", result.jobs_pending);
    if (result.report) {
      tell(*result.report);
    }
  }

  void collect() {
    ++collected_;
    Iteration it(inner_, {"hook", 1});
    const Tensor t = full(it, {64}, 2);
    tell("hook", t);
    if (!held_.empty() && collected_ % 2 == 0) {
      held_.pop_back();
    }
  }

  bool rarely() { return random_() % 12 == 0; }

  void nested() {
    Iteration it(inner_, {"nested", 1});
    Tensor a = full(it, {300}, 4);
    for (int i = 0; i < 3; ++i) {
      a = full(it, {300 + 50 * i}, i);
      tell("nested", a);
    }
    if (rarely()) {
      held_.push_back(a);
    }
    if (rarely()) {
      kept_.push_back(it.keep(a));
    }
    a = Tensor();
    close(it);
  }

  void close(Iteration& it) {
    try {
      tell(random_() % 2 == 0 ? it.close() : it.close_briefly());
    } catch (const StragglerError& e) {
      told_.append("thrown\n");
      tell(e.report());
    } catch (const std::exception& e) {
      told_.append(e.what()).append("\n");
    }
  }

  void one() {
    Iteration it(loop_, {"outer", static_cast<std::uint32_t>(1 + random_() % 2)});
    std::vector<Tensor> alive;
    for (int i = 0; i < 8; ++i) {
      alive.push_back(full(it, {80 * (i + 1)}, i));
      if (i >= 2) {
        tell("t", alive[static_cast<std::size_t>(i) - 2]);
        alive[static_cast<std::size_t>(i) - 2] = Tensor();
      }
    }
    if (rarely()) {
      held_.push_back(alive.back());
    }
    if (rarely()) {
      held_.push_back(alive[6]);
      Storage storage = held_.back().storage();
      storage.set_name("held");
    }
    if (rarely()) {
      alive.push_back(full(it, {static_cast<std::int64_t>(1 + random_() % 5000)}, 9));
    }
    parallel_for(rt_.step_executor(), 4, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        alive.push_back(full(it, {20 + i}, static_cast<double>(i)));
      }
    });
    tell("split", alive.back());
    nested();
    if (rarely()) {
      kept_.push_back(it.keep(alive.front().storage() ? alive.front() : alive.back()));
    }
    if (rarely()) {
      kept_.push_back(it.keep_copy(alive.back()));
    }
    if (rarely()) {
      alive.back().resize_({static_cast<std::int64_t>(1 + random_() % 900)});
      tell("resized", static_cast<std::uint64_t>(alive.back().elements()));
    }
    if (rarely()) {
      const LongLived own(rt_);
      kept_.push_back(full(rt_, {77}, 5));
    }
    if (rarely()) {
      Storage storage = alive.back().storage();
      storage.defer_release();
    }
    {
      std::pmr::vector<int> box(it.resource({"box", 1}));
      for (int i = 0; i < 100; ++i) {
        box.push_back(i);
      }
      tell("box", static_cast<std::uint64_t>(box.back()));
    }
    alive.clear();
    for (const Tensor& t : held_) {
      tell("held", t);
    }
    for (const Tensor& t : kept_) {
      tell("kept", t);
    }
    if (rarely()) {
      held_.clear();
    }
    if (rarely()) {
      kept_.clear();
    }
    close(it);
    tell("long-lived", rt_.stats().storages_live);
    tell("late", rt_.stats().storages_late);
    tell("unowned", rt_.stats().storages_unowned);
    tell("adopted", rt_.stats().adopted_live);
    tell("adopted bytes", rt_.stats().adopted_bytes.count());
  }

  std::string told_;
  std::string log_;
  std::mt19937_64 random_;
  const Policy policy_;
  Runtime rt_;
  Loop loop_;
  Loop inner_;
  std::uint64_t collected_ = 0;
  std::vector<Tensor> held_;
  std::vector<Tensor> kept_;
};

}  // namespace

TEST_CASE("loop plans: contents, counts and reports are the same without plans") {
  const std::uint64_t seed = ebb::test::test_seed();
  CAPTURE(seed);
  const std::uint64_t programs = 1 + ebb::test::stress(20'000) / 2'500;
  std::uint64_t followed = 0;
  for (std::uint64_t i = 0; i < programs; ++i) {
    CAPTURE(i);
    Program with(seed + i, true);
    Program without(seed + i, false);
    with.run(80);
    without.run(80);
    CHECK(without.followed() == 0);
    followed += with.followed();
    const std::string a = with.told();
    const std::string b = without.told();
    const auto differ = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    if (a != b) {
      const std::size_t from = differ > 400 ? differ - 400 : 0;
      INFO("with plans: ", a.substr(from, 600));
      INFO("without: ", b.substr(from, 600));
      FAIL("they differ");
    }
  }
  CHECK(followed > 0);
}
