// SPDX-License-Identifier: Apache-2.0
// What a report tells, when one is made, and how often it is logged. [gc.report]
#include "domain_fixture.h"
#include "running_clock.h"
#include "support/sanitized.h"

#include <ebb/gc/live.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;

namespace {

// A loop that waits for nothing and warms up in no time.
struct Impatient {
  DomainFixture f;
  CloseSeries series{f.domain,
                     {.name = "train", .deadline = std::chrono::milliseconds(0), .warmup = 0}};
  std::vector<Storage> kept;
  std::uint64_t next = 0;

  // One iteration that keeps a storage made at line of "leak.cpp".
  CloseResult leak(std::uint32_t line, bool briefly = true) {
    OpenOwner it(series, next++, Place::here());
    kept.push_back(DomainFixture::make(64_B, Place{"leak.cpp", line}));
    return briefly ? it.close_briefly() : it.close();
  }
  CloseResult clean() {
    OpenOwner it(series, next++, Place::here());
    return it.close_briefly();
  }
};

}  // namespace

TEST_CASE("report: made when there is news, and always when close() is called") {
  Impatient loop;
  CHECK(loop.leak(1).report != nullptr);  // the first time
  CHECK(loop.leak(1).report == nullptr);
  CHECK(loop.leak(1).report != nullptr);  // the third time running
  const CloseResult fourth = loop.leak(1);
  CHECK(fourth.report == nullptr);
  CHECK(fourth.stragglers == 1);
  CHECK(fourth.straggler_bytes == 64_B);
  CHECK_FALSE(fourth.clean());
  CHECK(loop.leak(1, false).report->places.at(0).streak == 5);
  CHECK(loop.f.log().size() == 2);
  CHECK(loop.clean().report == nullptr);
  CHECK(loop.leak(1).report != nullptr);  // it had closed clean
  CHECK(loop.f.log().size() == 3);
}

TEST_CASE("report: earlier stragglers of the same line that live on are counted, with their age") {
  Impatient loop;
  loop.leak(1);
  loop.leak(1);
  const CloseResult third = loop.leak(1);
  const StragglerPlace& place = third.report->places.at(0);
  CHECK(place.earlier_count == 2);
  CHECK(place.earlier_bytes == 128_B);
  CHECK(place.age == 2);
  CHECK(third.report->text().find(
            "2 earlier ones (128 B) from this line still alive, the oldest for 2 iterations") !=
        std::string::npos);
  loop.kept.clear();
  loop.clean();
  CHECK(loop.leak(1).report->places.at(0).earlier_count == 0);
}

TEST_CASE("report: bound functions that did not end are named by their line") {
  Impatient loop;
  std::deque<Bound<void (*)()>> bound;
  OpenOwner it(loop.series, 7, Place::here());
  const Place line = Place::here();
  for (int i = 0; i < 2; ++i) {
    bound.push_back(bind(
        +[] {}, line));
  }
  bound.push_back(bind(
      +[] {}, Place{"other.cpp", 3}));
  bound.back()();
  const CloseResult result = it.close_briefly();
  CHECK(result.jobs_pending == 2);
  REQUIRE(result.report->jobs_started.size() == 1);
  CHECK(result.report->jobs_started[0].place == line);
  CHECK(result.report->jobs_started[0].count == 2);
  CHECK(loop.f.logged(":" + std::to_string(line.line) +
                      "  2 jobs that were started here have not ended"));
  bound.clear();
}

TEST_CASE("report: where one adapter line makes everything, backtraces tell stragglers apart") {
  Impatient loop;
  const auto step = [&loop] {
    OpenOwner it(loop.series, loop.next++, Place::here());
    for (int i = 0; i < 10; ++i) {
      Storage made = DomainFixture::make(64_B, Place{"adapter.cpp", 1});
      if (i == 3 || i == 7) {
        loop.kept.push_back(std::move(made));
      }
    }
    return it.close_briefly();
  };
  CHECK(step().report->places.at(0).traces.empty());  // nobody knew which to watch
  step();
  const CloseResult third = step();
  const StragglerPlace& place = third.report->places.at(0);
  REQUIRE(place.traces.size() == 2);
  CHECK(place.traces[0].sequence == 3);
  CHECK(place.traces[1].sequence == 7);
  for (const StragglerTrace& trace : place.traces) {
    REQUIRE_FALSE(trace.frames.empty());
    CHECK(std::any_of(trace.frames.begin(), trace.frames.end(), [](const std::string& frame) {
      return frame.find("test-gc") != std::string::npos;
    }));
  }
  CHECK(third.report->text().find("number 3 was made in\n      ") != std::string::npos);
  // It was told: from now on nothing is traced.
  step();
  CHECK(loop.leak(1, false).report->places.at(0).traces.empty());
}

TEST_CASE("report: traces can be switched off") {
  DomainFixture f;
  CloseSeries series(f.domain,
                     {.deadline = std::chrono::milliseconds(0), .warmup = 0, .traces = false});
  Storage kept;
  for (std::uint64_t i = 0; i < 3; ++i) {
    OpenOwner it(series, i, Place::here());
    kept = DomainFixture::make();
    CHECK(it.close().report->places.at(0).traces.empty());
  }
}

TEST_CASE("report: a loop that straggles everywhere writes ten lines at once, then one a second") {
  Impatient loop;
  for (std::uint32_t line = 1; line <= 100; ++line) {
    loop.leak(line);
  }
  CHECK(loop.f.log().size() == 10);
  loop.f.clock.advance(std::chrono::seconds(2));
  loop.leak(200);
  CHECK(loop.f.log().size() == 11);
  CHECK(loop.f.log().back().find("leak.cpp:200") != std::string::npos);
  CHECK(loop.f.log().back().find("(90 more reports of this loop were not logged)") !=
        std::string::npos);
  loop.leak(201);
  loop.leak(202);
  CHECK(loop.f.log().size() == 12);
}

TEST_CASE("report: as JSON it has every key of the README, whatever the names hold") {
  Impatient loop;
  OpenOwner it(loop.series, 3, Place::here());
  const Phase phase("back\"ward\n");
  Storage made = DomainFixture::make(1_KiB, Place{"dir\\file.cpp", 9});
  made.set_name("tab\there");
  const StorageHolder holder(made, "a peer", "test");
  const auto bound = bind([] {}, Place{"job.cpp", 4});
  const CloseResult result = it.close();
  const nlohmann::json json = nlohmann::json::parse(result.report->json());
  CHECK(json.at("loop") == "train");
  CHECK(json.at("iteration") == 3);
  CHECK(json.at("action") == "adopted");
  CHECK(json.at("waited_ms") == 0);
  CHECK(json.at("deadline_ms") == 0);
  CHECK(json.at("count") == 1);
  CHECK(json.at("bytes") == 1024);
  CHECK(json.at("revoked_count") == 0);
  CHECK(json.at("revoked_bytes") == 0);
  CHECK(json.at("jobs") == 1);
  CHECK(json.at("jobs_started") ==
        nlohmann::json::array({{{"file", "job.cpp"}, {"line", 4}, {"count", 1}}}));
  const nlohmann::json& place = json.at("places").at(0);
  CHECK(place.at("file") == "dir\\file.cpp");
  CHECK(place.at("line") == 9);
  CHECK(place.at("count") == 1);
  CHECK(place.at("bytes") == 1024);
  CHECK(place.at("what") == "");
  CHECK(place.at("name") == "tab\there");
  CHECK(place.at("phase") == "back\"ward\n");
  CHECK(place.at("holder") == "a peer");
  CHECK(place.at("sequence") == 0);
  CHECK(place.at("thread").is_number_unsigned());
  CHECK(place.at("streak") == 1);
  CHECK(place.at("waited") == true);
  CHECK(place.at("earlier_count") == 0);
  CHECK(place.at("earlier_bytes") == 0);
  CHECK(place.at("age") == 0);
  CHECK(place.at("traces").empty());
}

TEST_CASE(
    "report: a finalizer slower than the deadline is a straggler by its place; nothing hangs") {
  DomainFixture f;
  const test::RunningClock running(f.clock);
  CloseSeries series(f.domain, {.warmup = 0});
  std::atomic<bool> closed{false};
  Storage slow;
  OpenOwner it(series, 0, Place::here());
  slow = DomainFixture::make(64_B, Place{"slow.cpp", 5});
  slow.add_finalizer(
      [](void* flag) noexcept { static_cast<std::atomic<bool>*>(flag)->wait(false); }, &closed);
  std::jthread dropper([&slow] { slow.reset(); });
  const CloseResult result = it.close();
  CHECK(result.stragglers == 1);
  CHECK(result.report->places.at(0).place.line == 5);
  closed = true;
  closed.notify_all();
  dropper.join();
  CHECK(f.domain->stats().storages_live == 0);
  CHECK(f.domain->stats().adopted_live == 0);
  OpenOwner next(series, 1, Place::here());
  CHECK(next.close().clean());
}

TEST_CASE(
    "report: a phase lasts as long as its label, whatever iterations open and close meanwhile") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  OpenOwner outer(series, 0, Place::here());
  {
    const Phase backward("backward");
    OpenOwner inner(series, 1, Place::here());
    CHECK(inner.close().clean());
    CHECK(outer.close().clean());
    const Storage made =
        Storage::make(f.domain->long_lived(), 64_B, default_align_cpu, {Place::here()});
    const std::vector<StragglerPlace> live = live_storages(*f.domain);
    REQUIRE(live.size() == 1);
    CHECK(live[0].phase == "backward");
  }
  const Storage made =
      Storage::make(f.domain->long_lived(), 64_B, default_align_cpu, {Place::here()});
  const std::vector<StragglerPlace> live = live_storages(*f.domain);
  REQUIRE(live.size() == 1);
  CHECK(live[0].phase.empty());
}

TEST_CASE(
    "report: names that are not UTF-8 leave the JSON valid, and those that are come through") {
  const auto name_in_json = [](const std::string& name) {
    StragglerReport report;
    report.loop = name;
    return nlohmann::json::parse(report.json()).at("loop").get<std::string>();
  };
  const std::string unknown = "\xef\xbf\xbd";
  for (const std::string good : {"gr\xc3\xb6\xc3\x9f"
                                 "e",
                                 "\xe2\x82\xac \xf0\x9f\x8c\x8a", "\x7f", ""}) {
    CHECK(name_in_json(good) == good);
  }
  CHECK(name_in_json("a\xff") == "a" + unknown);
  CHECK(name_in_json("\xc3") == unknown);                                // cut off
  CHECK(name_in_json("\xc3(") == unknown + "(");                         // no second byte
  CHECK(name_in_json("\xc0\xaf") == unknown + unknown);                  // too long a form
  CHECK(name_in_json("\xed\xa0\x80") == unknown + unknown + unknown);    // half of a pair
  CHECK(name_in_json("\xf4\x90\x80\x80").size() == 4 * unknown.size());  // past the last one
}

TEST_CASE("report: thousands of places are told apart, and take a close no noticeable time") {
  constexpr std::uint32_t lines = 5000;
  constexpr std::uint64_t each = 20;
  const std::deque<std::string> files{"gen.cpp", "gen.cpp", "other.cpp"};  // the first twice
  Impatient loop;
  std::chrono::steady_clock::duration closing{0};
  for (std::uint64_t i = 0; i < 3; ++i) {
    OpenOwner it(loop.series, i, Place::here());
    for (std::uint32_t n = 0; n < 2 * each * lines; ++n) {
      const Place place{files[n % files.size()].c_str(), n % lines};
      loop.kept.push_back(DomainFixture::make(8_B, place));
    }
    const auto start = std::chrono::steady_clock::now();
    const CloseResult result = it.close();
    closing += std::chrono::steady_clock::now() - start;
    REQUIRE(result.report->places.size() == 2 * lines);
    std::uint64_t count = 0;
    for (const StragglerPlace& place : result.report->places) {
      count += place.count;
      CHECK(place.earlier_count == (i == 1 ? 0 : i * place.count));  // told with news only
      CHECK(place.streak == i + 1);
    }
    CHECK(count == 2 * each * lines);
  }
  // A search through all places for each storage takes a dozen seconds.
  CHECK((ebb::test::is_sanitized() || closing < std::chrono::seconds(6)));
}

TEST_CASE("report: what another thread made gets no backtrace of the loop's thread") {
  Impatient loop;
  const auto step = [&loop] {
    OpenOwner it(loop.series, loop.next++, Place::here());
    DomainFixture::make(64_B, Place{"own.cpp", 1});  // number 0 of this thread
    std::jthread([&, owner = it.owner()] {
      const OwnerScope scope(owner);
      loop.kept.push_back(DomainFixture::make(64_B, Place{"others.cpp", 2}));  // and of that one
    }).join();
    return it.close_briefly();
  };
  step();
  step();
  const CloseResult third = step();
  REQUIRE(third.report != nullptr);
  CHECK(third.report->places.at(0).place == Place{"others.cpp", 2});
  CHECK(third.report->places.at(0).traces.empty());
}

TEST_CASE("report: no more backtraces once what was to be traced has closed clean") {
  Impatient loop;
  const auto step = [&loop](bool also) {
    OpenOwner it(loop.series, loop.next++, Place::here());
    loop.kept.push_back(DomainFixture::make(64_B, Place{"always.cpp", 1}));
    Storage once = DomainFixture::make(64_B, Place{"once.cpp", 2});
    if (also) {
      loop.kept.push_back(once);
    }
    once.reset();
    return it.close_briefly();
  };
  for (int i = 0; i < 3; ++i) {
    step(false);  // told to the end
  }
  CHECK(step(true).report != nullptr);  // from now on the second one is watched
  step(false);                          // but it closes clean
  step(false);
  const CloseResult again = step(true);
  REQUIRE(again.report != nullptr);
  for (const StragglerPlace& place : again.report->places) {
    CHECK(place.traces.empty());
  }
}
