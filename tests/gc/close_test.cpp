// SPDX-License-Identifier: Apache-2.0
// Closing iterations: deadlines, policies, reports. [gc.close] [gc.policy] [gc.report]
#include "domain_fixture.h"
#include "running_clock.h"

#include <doctest/doctest.h>

#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;
using ebb::test::RunningClock;
using std::chrono::milliseconds;

namespace {

std::string place_of(Place at) {
  return std::string(at.file) + ":" + std::to_string(at.line);
}

}  // namespace

TEST_CASE("close: with nothing alive it is clean and waits for nothing") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  for (std::uint64_t i = 0; i < 100; ++i) {
    OpenOwner it(series, i, Place::here());
    { const Storage temporary = DomainFixture::make(); }
    CHECK(it.close().clean());
  }
  CHECK(f.clock.waits() == 0);
  CHECK(series.closed_total() == 100);
}

TEST_CASE("close: a straggler is waited for until the deadline, reported by line and adopted") {
  DomainFixture f;
  const RunningClock running(f.clock);
  CloseSeries series(f.domain, {.name = "train", .deadline = milliseconds(250), .warmup = 0});
  Storage leaked;
  OpenOwner it(series, 41, Place::here());
  const Place line = Place::here();
  leaked = DomainFixture::make(1_MiB, line);
  leaked.set_name("activations");
  const CloseResult result = it.close();
  CHECK(result.stragglers == 1);
  CHECK(result.straggler_bytes == 1_MiB);
  CHECK(result.waited >= milliseconds(250));
  CHECK(leaked.owner_kind() == OwnerKind::runtime);
  CHECK(f.domain->stats().adopted_bytes == 1_MiB);
  const std::string text = result.report->text();
  CHECK(text.find("loop \"train\", iteration 41: 1 storage (1 MiB) still alive") == 0);
  CHECK(text.find(place_of(line)) != std::string::npos);
  CHECK(text.find("named \"activations\"") != std::string::npos);
  CHECK(f.logged(place_of(line)));
  const std::string json = result.report->json();
  CHECK(json.find("\"action\":\"adopted\"") != std::string::npos);
  CHECK(json.find("\"line\":" + std::to_string(line.line)) != std::string::npos);
  leaked.reset();
  CHECK(f.domain->stats().adopted_live == 0);
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("close: a reference dropped by another thread ends the wait at once") {
  DomainFixture f;  // its clock stands still: only the drop can end the wait
  CloseSeries series(f.domain, {});
  Storage held;
  OpenOwner it(series, 0, Place::here());
  held = DomainFixture::make();
  std::jthread dropper([&] {
    while (f.clock.waits() == 0) {
      std::this_thread::yield();
    }
    held.reset();
  });
  CHECK(it.close().clean());
  CHECK(f.clock.waits() > 0);
}

TEST_CASE("close: a place gets the deadline once, then the policy at once until it closes clean") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = milliseconds(100), .warmup = 0});
  Storage gradient;
  const auto iterate = [&](std::uint64_t n, bool leak) {
    OpenOwner it(series, n, Place::here());
    if (leak) {
      gradient = DomainFixture::make(64_B, Place{"model.cpp", 7});
    }
    return it.close();
  };
  {
    const RunningClock running(f.clock);
    CHECK(iterate(0, true).waited >= milliseconds(100));
  }
  const unsigned waits = f.clock.waits();
  for (std::uint64_t n = 1; n < 20; ++n) {
    CHECK(iterate(n, true).stragglers == 1);
  }
  CHECK(f.clock.waits() == waits);  // a loop whose gradients are made anew pays nothing
  gradient.reset();
  CHECK(iterate(20, false).clean());
  const RunningClock running(f.clock);
  CHECK(iterate(21, true).waited >= milliseconds(100));
  // Logged the first time, once more at the third in a row, and when it came back.
  std::size_t lines = 0;
  for (const std::string& line : f.log()) {
    lines += line.find("model.cpp:7") != std::string::npos ? 1 : 0;
  }
  CHECK(lines == 3);
}

TEST_CASE("close: policy fail throws after warmup, with the report, and still adopts") {
  DomainFixture f;
  const RunningClock running(f.clock);
  CloseSeries series(f.domain, {.policy = Policy::fail, .warmup = 2});
  std::vector<Storage> kept;
  for (std::uint64_t n = 0; n < 2; ++n) {
    OpenOwner it(series, n, Place::here());
    kept.push_back(DomainFixture::make(64_B, Place{"state.cpp", static_cast<std::uint32_t>(n)}));
    CHECK(it.close().stragglers == 1);
  }
  CHECK(f.log().empty());  // what lives on from warmup is state, not news
  OpenOwner it(series, 2, Place::here());
  kept.push_back(DomainFixture::make(64_B, Place{"late.cpp", 3}));
  try {
    it.close();
    FAIL("a straggler after warmup did not throw");
  } catch (const StragglerError& e) {
    CHECK(std::string(e.what()).find("[Iteration::close]") == 0);
    CHECK(std::string(e.what()).find("late.cpp:3") != std::string::npos);
    CHECK(e.report().count == 1);
    CHECK(e.report().action == CloseAction::failed);
  }
  CHECK(kept.back().owner_kind() == OwnerKind::runtime);
  CHECK_FALSE(it.is_open());
}

TEST_CASE("close: adopted bytes past straggler_bytes throw and say what to do") {
  DomainFixture f;
  const RunningClock running(f.clock);
  CloseSeries series(f.domain, {.straggler_bytes = 150_KiB});
  Storage a;
  Storage b;
  {
    OpenOwner it(series, 0, Place::here());
    a = DomainFixture::make(100_KiB);
    CHECK(it.close().stragglers == 1);
  }
  OpenOwner it(series, 1, Place::here());
  b = DomainFixture::make(100_KiB);
  CHECK_THROWS_WITH_AS(it.close(), doctest::Contains("straggler_bytes (150 KiB)"), StragglerError);
}

TEST_CASE("close: a destructor stores the error, and the next open throws it once") {
  DomainFixture f;
  const RunningClock running(f.clock);
  CloseSeries series(f.domain, {.policy = Policy::fail, .warmup = 0});
  Storage kept;
  {
    OpenOwner it(series, 0, Place::here());
    kept = DomainFixture::make();
  }
  CHECK_THROWS_AS(OpenOwner(series, 1, Place::here()), StragglerError);
  OpenOwner it(series, 2, Place::here());
  CHECK(it.close().clean());
}

TEST_CASE("close: a second close throws and changes nothing") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  OpenOwner outer(series, 0, Place::here());
  OpenOwner it(series, 1, Place::here());
  CHECK(it.close().clean());
  CHECK_THROWS_WITH_AS(it.close(), doctest::Contains("it is closed already"),
                       std::invalid_argument);
  CHECK(series.closed_total() == 1);
  CHECK(Owner::current("test") == outer.owner());
  CHECK(outer.close().clean());
}

TEST_CASE("close: jobs are waited for, and their first error surfaces") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  OpenOwner it(series, 0, Place::here());
  auto job = std::make_unique<Job>(it.owner());
  std::jthread worker([&] {
    while (f.clock.waits() == 0) {
      std::this_thread::yield();
    }
    job->fail(std::make_exception_ptr(std::runtime_error("first")));
    job->fail(std::make_exception_ptr(std::runtime_error("second")));
    job.reset();
  });
  CHECK_THROWS_WITH_AS(it.close(), "first", std::runtime_error);
  CHECK_FALSE(it.is_open());
}

TEST_CASE("close: a job that does not end is reported at the deadline; what it makes is late") {
  DomainFixture f;
  const RunningClock running(f.clock);
  CloseSeries series(f.domain, {.warmup = 0});
  OpenOwner it(series, 0, Place::here());
  auto bound = bind([] { return DomainFixture::make(); });
  const CloseResult result = it.close();
  CHECK(result.jobs_pending == 1);
  CHECK(result.report->text().find("1 job not ended") != std::string::npos);
  const Storage late = bound();
  CHECK(late.owner_kind() == OwnerKind::runtime);
  CHECK(f.domain->stats().storages_late == 1);
  CHECK(f.logged("ran late"));
  // The record rests until the job ended; later iterations are not disturbed.
  for (std::uint64_t n = 1; n < 10; ++n) {
    OpenOwner next(series, n, Place::here());
    CHECK(next.close().clean());
  }
}

TEST_CASE("close: without a deadline it reports every few seconds and goes on waiting") {
  DomainFixture f;
  CloseSeries series(f.domain, {.name = "endless", .deadline = forever});
  Storage held;
  OpenOwner it(series, 0, Place::here());
  const Place line = Place::here();
  held = DomainFixture::make(64_B, line);
  std::jthread other([&] {
    const RunningClock running(f.clock);
    while (!f.logged("closing still waits for 1 storages")) {
      std::this_thread::yield();
    }
    held.reset();
  });
  CHECK(it.close().clean());
  CHECK(f.logged(place_of(line)));
}

TEST_CASE("close: another thread may not close; its destructor adopts at once and says so") {
  DomainFixture f;  // the clock stands still: nothing here may wait
  CloseSeries series(f.domain, {.name = "train"});
  auto it = std::make_unique<OpenOwner>(series, 0, Place::here());
  const Place line = Place::here();
  const Storage held = DomainFixture::make(64_B, line);
  std::jthread([&] {
    CHECK_THROWS_WITH_AS(it->close(), doctest::Contains(place_of(line).c_str()),
                         std::invalid_argument);
    CHECK(it->is_open());
    it.reset();
  });
  CHECK(held.owner_kind() == OwnerKind::runtime);
  CHECK(f.logged("opened by another thread"));
  CHECK(f.logged(place_of(line)));
  OpenOwner next(series, 1, Place::here());  // the thread goes on
  CHECK(next.close().clean());
}

TEST_CASE("close: last in, first out; another order throws and closes nothing") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  OpenOwner outer(series, 0, Place::here());
  const Storage a = DomainFixture::make();
  OpenOwner inner(series, 1, Place::here());
  Storage b = DomainFixture::make();
  CHECK_THROWS_WITH_AS(outer.close(), doctest::Contains("innermost"), std::invalid_argument);
  CHECK(outer.is_open());
  CHECK(a.owner_kind() == OwnerKind::iteration);
  b.reset();
  CHECK(inner.close().clean());
  CHECK(Owner::current("test") == outer.owner());
  Storage c = DomainFixture::make();
  CHECK(c.owner_record() == outer.owner().record());
  c.transfer(outer.parent());
}

TEST_CASE("close: guards destroyed out of order adopt, log, and leave the thread usable") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  auto outer = std::make_unique<OpenOwner>(series, 0, Place::here());
  const Storage a = DomainFixture::make();
  auto inner = std::make_unique<OpenOwner>(series, 1, Place::here());
  outer.reset();
  CHECK(f.logged("innermost"));
  CHECK(a.owner_kind() == OwnerKind::runtime);
  Storage b = DomainFixture::make();
  CHECK(b.owner_record() == inner->owner().record());
  b.reset();
  CHECK(inner->close().clean());
  OpenOwner next(series, 2, Place::here());
  CHECK(next.close().clean());
}

TEST_CASE("close: nested iterations give what is kept to their parent") {
  DomainFixture f;
  CloseSeries outer_series(f.domain, {});
  CloseSeries inner_series(f.domain, {});
  OpenOwner outer(outer_series, 0, Place::here());
  Storage kept;
  {
    OpenOwner inner(inner_series, 0, Place::here());
    kept = DomainFixture::make();
    kept.transfer(inner.parent());
    CHECK(inner.close().clean());
  }
  CHECK(kept.owner_record() == outer.owner().record());
  kept.reset();
  CHECK(outer.close().clean());
}

TEST_CASE("close: loops on several threads do not wait for each other") {
  DomainFixture f;  // the clock stands still: a wait would hang
  CloseSeries series_a(f.domain, {});
  CloseSeries series_b(f.domain, {});
  std::latch b_holds(1);
  std::latch a_closed(1);
  std::jthread other([&] {
    OpenOwner it(series_b, 0, Place::here());
    Storage held = DomainFixture::make();
    b_holds.count_down();
    a_closed.wait();
    held.reset();
    CHECK(it.close().clean());
  });
  b_holds.wait();
  OpenOwner it(series_a, 0, Place::here());
  { const Storage temporary = DomainFixture::make(); }
  CHECK(it.close().clean());
  a_closed.count_down();
}

TEST_CASE("close: a phase is named in the report") {
  DomainFixture f;
  const RunningClock running(f.clock);
  CloseSeries series(f.domain, {});
  Storage held;
  OpenOwner it(series, 0, Place::here());
  {
    const Phase phase("backward");
    held = DomainFixture::make();
  }
  CHECK(it.close().report->places.at(0).phase == "backward");
}

TEST_CASE("close: a guard that outlives its runtime closes, and its storages stay valid") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = milliseconds(0)});
  Storage held;
  {
    OpenOwner it(series, 0, Place::here());
    held = DomainFixture::make();
    f.domain->shutdown();
    *static_cast<int*>(held.data()) = 5;
    std::jthread([] { CHECK_FALSE(Owner::current_or_none()); });
  }
  CHECK(*static_cast<int*>(held.data()) == 5);
  CHECK_THROWS_AS(Storage::make(f.domain->long_lived(), 64_B, default_align_cpu, {}),
                  std::invalid_argument);
  held.reset();
}

TEST_CASE(
    "close: clean iterations within a straggling one, or beside it, do not make its places new") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(100), .warmup = 0});
  const ebb::test::RunningClock running(f.clock);
  std::uint64_t number = 0;
  const auto clean = [&] {
    OpenOwner it(series, number++, Place::here());
    CHECK(it.close().clean());
  };
  Storage gradient;
  for (int step = 0; step < 5; ++step) {
    OpenOwner outer(series, number++, Place::here());
    gradient = DomainFixture::make();
    clean();
    std::jthread(clean).join();
    const CloseResult result = outer.close();
    CHECK(result.stragglers == 1);
    CHECK(result.report->places.at(0).waited == (step == 0));
  }
  CHECK(f.log().size() == 2);  // the first time, and the third in a row
  clean();                     // in its place
  OpenOwner outer(series, number++, Place::here());
  gradient = DomainFixture::make();
  CHECK(outer.close().report->places.at(0).waited);
}

TEST_CASE("close: places of a thread that comes no more are forgotten in the end") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(100), .warmup = 0});
  const ebb::test::RunningClock running(f.clock);
  Storage held;
  const auto straggle = [&](std::uint64_t number) {
    OpenOwner it(series, number, Place::here());
    held = DomainFixture::make(64_B, Place{"old.cpp", 1});
    return it.close().report->places.at(0).waited;
  };
  std::jthread([&] { CHECK(straggle(0)); }).join();
  for (std::uint64_t i = 1; i < 1000; ++i) {
    OpenOwner it(series, i, Place::here());
    CHECK(it.close().clean());
  }
  CHECK(straggle(1000));
}
