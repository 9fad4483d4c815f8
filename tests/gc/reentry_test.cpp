// SPDX-License-Identifier: Apache-2.0
// The host's code that a close runs (hooks, tasks, finalizers) comes back to ebb. [gc.close]
#include "domain_fixture.h"
#include "running_clock.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

using namespace ebb;
using ebb::test::DomainFixture;
using ebb::test::RunningClock;

namespace {

// What a function that a close runs has met.
struct Tried {
  int refused = 0;

  void close(OpenOwner& it) {
    try {
      it.close();
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
};

}  // namespace

TEST_CASE("reentry: a hook that closes the iteration that runs it is refused") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 9});
  Tried tried;
  OpenOwner* open = nullptr;
  series.on_collect([&] { tried.close(*open); });
  Storage held;
  {
    OpenOwner it(series, 0, Place::here());
    open = &it;
    held = DomainFixture::make();
    CHECK(it.close().stragglers == 1);
    CHECK_FALSE(it.owner().is_open());
  }
  CHECK(tried.refused == 1);
  CHECK(series.closed_total() == 1);
  CHECK_FALSE(Owner::current_or_none());
  OpenOwner a(series, 1, Place::here());
  OpenOwner b(series, 2, Place::here());
  CHECK(a.owner().record() != b.owner().record());
  CHECK(b.close().clean());
  CHECK(a.close().clean());
}

TEST_CASE("reentry: a task that closes the iteration that waits for it is refused") {
  struct Help {
    Tried tried;
    OpenOwner* open = nullptr;
    Job job;
    bool done = false;
  } help;
  DomainFixture f;
  CloseSeries series(f.domain, {.help =
                                    [](void* context) noexcept {
                                      auto& h = *static_cast<Help*>(context);
                                      if (std::exchange(h.done, true)) {
                                        return false;
                                      }
                                      const detail::JobEnd end(h.job);
                                      const OwnerScope scope(h.job.owner());
                                      h.tried.close(*h.open);
                                      return true;
                                    },
                                .help_context = &help});
  OpenOwner it(series, 0, Place::here());
  help.open = &it;
  help.job = Job(it.owner());
  CHECK(it.close().clean());
  CHECK(help.tried.refused == 1);
  CHECK(series.closed_total() == 1);
}

TEST_CASE("reentry: a hook may run an iteration of its own loop that straggles") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 9});
  int runs = 0;
  Storage inner_held;
  series.on_collect([&] {
    ++runs;
    OpenOwner inner(series, 1, Place::here());
    inner_held = DomainFixture::make();
    CHECK(inner.close().stragglers == 1);
  });
  Storage held;
  OpenOwner it(series, 0, Place::here());
  held = DomainFixture::make();
  CHECK(it.close().stragglers == 1);
  CHECK(runs == 1);
  CHECK(series.closed_total() == 2);
}

TEST_CASE("reentry: a hook may add one, which the next collection runs") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 9});
  int added_ran = 0;
  series.on_collect([&] { series.on_collect([&] { ++added_ran; }); });
  const auto straggle = [&](std::uint64_t number, Place place) {
    OpenOwner it(series, number, Place::here());
    const Storage held = DomainFixture::make(Bytes{64}, place);
    CHECK(it.close().stragglers == 1);
  };
  straggle(0, Place::here());
  CHECK(added_ran == 0);
  straggle(1, Place::here());
  CHECK(added_ran == 1);
}

TEST_CASE(
    "reentry: a guard whose close fails with anything but a std::exception is not left open") {
  class Broken final : public Clock {
   public:
    TimePoint now() const noexcept override { return steady_clock().now(); }
    void wait_until(std::condition_variable&, std::unique_lock<std::mutex>&, TimePoint) override {
      throw 7;
    }
  } clock;
  const auto domain = Domain::make({.log = [](LogLevel, std::string_view) {}, .clock = &clock});
  CloseSeries series(domain, {});
  Storage held;
  {
    OpenOwner it(series, 0, Place::here());
    held = DomainFixture::make();
  }
  CHECK_FALSE(Owner::current_or_none());
  CHECK(held.owner_kind() == OwnerKind::runtime);
  held.reset();
  domain->shutdown();
}

TEST_CASE("reentry: a close does not wait longer than its deadline for another thread's hooks") {
  DomainFixture f;
  const RunningClock running(f.clock);
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(100), .warmup = 9});
  std::atomic<bool> in_hook{false};
  std::atomic<bool> closed{false};
  bool came_out = false;
  series.on_collect([&] {  // as one that waits for a lock that the other thread holds in close()
    in_hook = true;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!closed && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::yield();
    }
    came_out = closed;
  });
  const auto straggle = [&](std::uint64_t number) {
    OpenOwner it(series, number, Place::here());
    const Storage held = DomainFixture::make();
    CHECK(it.close().stragglers == 1);
  };
  std::jthread other([&] { straggle(0); });
  while (!in_hook) {
    std::this_thread::yield();
  }
  straggle(1);
  closed = true;
  other.join();
  CHECK(came_out);
}
