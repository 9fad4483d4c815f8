// SPDX-License-Identifier: Apache-2.0
// Every call for memory in an iteration fails once, in turn: nothing is lost, and the same loop
// goes on. First the source's pages, then operator new. [gc.close]
#include "domain_fixture.h"
#include "support/failing_source.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <exception>
#include <new>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;
using ebb::test::FailingSource;

namespace {

// Counts down with every operator new of this thread while it is above 0; at 0 that one fails.
thread_local long fail_new_in = -1;

bool should_fail() noexcept {
  return fail_new_in > 0 && --fail_new_in == 0;
}

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = should_fail() ? nullptr : std::malloc(size != 0 ? size : 1);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

TEST_CASE("fault: each page that a storage needs is refused in turn, and asking again works") {
  bool failed = true;
  for (std::uint64_t n = 1; failed; ++n) {
    FailingSource source(system_source());
    DomainFixture f(&source);
    CloseSeries series(f.domain, {.policy = Policy::fail, .warmup = 0});
    OpenOwner it(series, 0, Place::here());
    source.fail_at(n);
    failed = false;
    for (const Bytes bytes : {64_B, 5000_B, 3_MiB}) {
      try {
        const Storage made = DomainFixture::make(bytes);
      } catch (const OutOfMemory& e) {
        CHECK(e.info().asked >= bytes);
        failed = true;
        const Storage again = DomainFixture::make(bytes);  // only one call was refused
        CHECK(again.bytes() == bytes);
      }
    }
    CHECK(it.close().clean());
    CHECK(f.domain->memory().blocks_live == 0);
    CHECK(n < 100);
  }
}

TEST_CASE("fault: each heap call of a close with stragglers fails in turn; all are adopted") {
  bool failed = true;
  for (long n = 1; failed; ++n) {
    DomainFixture f;
    CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 0});
    Storage a;
    Storage b;
    {
      OpenOwner it(series, 0, Place::here());
      a = DomainFixture::make(64_B, Place{"a.cpp", 1});
      b = DomainFixture::make(64_B, Place{"b.cpp", 2});
      fail_new_in = n;
    }  // the destructor: it must not throw, whatever fails
    failed = fail_new_in == 0;
    fail_new_in = -1;
    CHECK(a.owner_kind() == OwnerKind::runtime);
    CHECK(b.owner_kind() == OwnerKind::runtime);
    a.reset();
    b.reset();
    CHECK(f.domain->stats().storages_live == 0);
    CHECK(f.domain->stats().adopted_live == 0);
    try {
      series.rethrow_stored();
    } catch (const std::bad_alloc&) {
    }
    OpenOwner next(series, 1, Place::here());
    CHECK(next.close().clean());
    CHECK(n < 1000);
  }
}

TEST_CASE("fault: each heap call of a close fails in turn; it tells less, and still how it ended") {
  bool failed = true;
  for (long n = 1; failed; ++n) {
    DomainFixture f;
    CloseSeries series(f.domain, {.deadline = std::chrono::milliseconds(0), .warmup = 0});
    Storage held;
    failed = false;
    for (const bool with_error : {false, true}) {
      OpenOwner it(series, 0, Place::here());
      held = DomainFixture::make(64_B, Place{"a.cpp", with_error ? 1u : 2u});
      Job job(it.owner());
      const std::exception_ptr error = std::make_exception_ptr(7);
      if (with_error) {
        job.fail(error);
      }
      job.finish();
      fail_new_in = n;
      bool threw = false;
      CloseResult result;
      try {
        result = it.close();
      } catch (int) {
        threw = true;
      }
      failed = failed || fail_new_in == 0;
      fail_new_in = -1;
      CHECK(threw == with_error);
      CHECK((threw || result.stragglers == 1));
    }
    CHECK(n < 1000);
  }
}

TEST_CASE("fault: each heap call of opening, binding and finalizers fails in turn") {
  bool failed = true;
  for (long n = 1; failed; ++n) {
    DomainFixture f;
    CloseSeries series(f.domain, {});
    fail_new_in = n;
    try {
      OpenOwner it(series, 0, Place::here());
      Storage made = DomainFixture::make();
      made.add_finalizer([](void*) noexcept {}, nullptr);
      bind([] {})();
      made.reset();
      it.close();
    } catch (const std::bad_alloc&) {
    }
    failed = fail_new_in == 0;
    fail_new_in = -1;
    OpenOwner again(series, 1, Place::here());
    { const Storage made = DomainFixture::make(); }
    CHECK(again.close().clean());
    CHECK(f.domain->stats().storages_live == 0);
    CHECK(n < 1000);
  }
}
