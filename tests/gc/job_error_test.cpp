// SPDX-License-Identifier: Apache-2.0
// Errors of jobs that end while their iteration does. [gc.close]
#include "domain_fixture.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::DomainFixture;

namespace {

struct Failed {
  std::uint64_t iteration;
};

}  // namespace

TEST_CASE("job: an error that comes while its iteration closes is never thrown by another one") {
  constexpr std::uint64_t iterations = 20'000;
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = ~0ull});
  std::atomic<std::uint64_t> go{0};
  Job job;  // handed over by go and done
  std::atomic<std::uint64_t> done{0};
  // Until the end, since a sanitizer does not see how the standard library counts who refers to
  // one.
  std::vector<std::exception_ptr> errors;
  errors.reserve(iterations);
  std::jthread worker([&] {
    for (std::uint64_t i = 1; i <= iterations; ++i) {
      while (go != i) {
      }
      job.fail(errors.emplace_back(std::make_exception_ptr(Failed{i - 1})));
      job.finish();
      done = i;
    }
  });
  std::uint64_t own = 0;
  std::uint64_t others = 0;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    OpenOwner it(series, i, Place::here());
    job = Job(it.owner());
    go = i + 1;
    try {
      it.close_briefly();
    } catch (const Failed& failed) {
      ++(failed.iteration == i ? own : others);
    }
    while (done != i + 1) {
    }
  }
  CHECK(others == 0);
  CHECK(own > 0);
}

TEST_CASE("job: the error of an iteration that is abandoned is the loop's, not the next one's") {
  DomainFixture f;
  CloseSeries series(f.domain, {});
  CloseSeries other(f.domain, {});
  std::optional<OpenOwner> outer(std::in_place, series, 0, Place::here());
  OpenOwner inner(series, 1, Place::here());
  {
    Job job(outer->owner());
    job.fail(std::make_exception_ptr(Failed{0}));
  }
  outer.reset();  // out of order
  CHECK(f.logged("not the innermost one"));
  CHECK(inner.close().clean());
  for (std::uint64_t i = 0; i < 2; ++i) {
    OpenOwner next(other, i, Place::here());
    OpenOwner nested(other, i, Place::here());
    CHECK(nested.close().clean());
    CHECK(next.close().clean());
  }
  CHECK_THROWS_AS(series.rethrow_stored(), Failed);
}
