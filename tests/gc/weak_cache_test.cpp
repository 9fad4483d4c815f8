// SPDX-License-Identifier: Apache-2.0
// Storages by key: one per key while it lives, however many threads ask. And what finalizers may
// do. Run under ThreadSanitizer too. [gc.storage]
#include "domain_fixture.h"
#include "racing.h"

#include <ebb/gc/weak_cache.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DomainFixture;
using ebb::test::Meeting;
using ebb::test::race;
using ebb::test::rounds;

namespace {

// A long-lived storage, from any thread.
Storage make_in(DomainFixture& f) {
  return Storage::make(f.domain->long_lived(), 64_B, default_align_cpu, {Place::here()});
}

}  // namespace

TEST_CASE("weak cache: a key has the storage that was made for it while somebody holds that") {
  DomainFixture f;
  WeakCache<std::string> cache;
  CHECK_FALSE(cache.find("a"));
  int made = 0;
  const auto make = [&] {
    ++made;
    return make_in(f);
  };
  Storage first = cache.get("a", make);
  CHECK(cache.get("a", make).is_same(first));
  CHECK(cache.find("a").is_same(first));
  CHECK_FALSE(cache.get("b", make).is_same(first));
  CHECK(made == 2);
  first.reset();
  CHECK_FALSE(cache.find("a"));
  first = cache.get("a", make);
  CHECK(made == 3);
  CHECK(f.domain->memory().blocks_live == 1);  // the cache holds none
  cache.clear();
  CHECK(cache.size() == 0);
  CHECK_FALSE(cache.find("a"));
  CHECK(first.use_count() == 1);
}

TEST_CASE("weak cache: expired entries are swept out, living ones stay") {
  DomainFixture f;
  WeakCache<int> cache;
  std::vector<Storage> living;
  std::size_t largest = 0;
  for (int i = 0; i < 5000; ++i) {
    Storage made = cache.get(i, [&] { return make_in(f); });
    if (i % 100 == 0) {
      living.push_back(std::move(made));
    }
    largest = std::max(largest, cache.size());
  }
  CHECK(largest <= 2 * living.size());
  for (std::size_t i = 0; i < living.size(); ++i) {
    CHECK(cache.find(static_cast<int>(i) * 100).is_same(living[i]));
  }
}

TEST_CASE("weak cache: a make that fails, or gives nothing, leaves nothing") {
  DomainFixture f;
  WeakCache<int> cache;
  const auto fail = []() -> Storage { throw std::runtime_error("make"); };
  CHECK_THROWS_WITH_AS(cache.get(1, fail), "make", std::runtime_error);
  CHECK_FALSE(cache.get(1, [] { return Storage(); }));
  CHECK(cache.size() == 0);
  Storage expired = cache.get(1, [&] { return make_in(f); });
  expired.reset();
  CHECK_THROWS_WITH_AS(cache.get(1, fail), "make", std::runtime_error);
  CHECK(cache.size() == 0);
  CHECK(cache.get(1, [&] { return make_in(f); }));
}

TEST_CASE("weak cache: make may use the cache, for other keys than its own") {
  DomainFixture f;
  WeakCache<int> cache;
  Storage inner;
  const Storage outer = cache.get(1, [&] {
    CHECK_FALSE(cache.find(1));
    cache.clear();
    inner = cache.get(2, [&] { return make_in(f); });
    return make_in(f);
  });
  CHECK(cache.find(1).is_same(outer));
  CHECK(cache.find(2).is_same(inner));
  const auto circle = [&] { return cache.get(3, [&] { return make_in(f); }); };
  CHECK_THROWS_WITH_AS(cache.get(3, circle), doctest::Contains("[WeakCache::get]"),
                       std::invalid_argument);
  CHECK_FALSE(cache.find(3));
}

TEST_CASE("weak cache: threads that ask at the same moment get one storage, made once") {
  DomainFixture f;
  WeakCache<int> cache;
  constexpr int threads = 3;
  const int count = rounds() / 4;
  Meeting start(threads);
  Meeting all_have(threads);
  Meeting checked(threads);
  std::atomic<int> made{0};
  std::array<Storage, threads> got;
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> crew;
    for (std::size_t me = 0; me < threads; ++me) {
      crew.emplace_back([&, me] {
        for (int i = 0; i < count; ++i) {
          start.meet();
          got[me] = cache.get(i % 3, [&] {
            ++made;
            return make_in(f);
          });
          all_have.meet();
          wrong += got[me].is_same(got[(me + 1) % threads]) ? 0 : 1;
          checked.meet();
          got[me].reset();
        }
      });
    }
  }
  CHECK(wrong == 0);
  CHECK(made == count);
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("weak cache: who waits for a make that fails makes it") {
  DomainFixture f;
  WeakCache<int> cache;
  std::atomic<bool> making{false};
  std::atomic<bool> asking{false};
  int failures = 0;
  Storage made;
  const auto fail = [&]() -> Storage {
    making = true;
    while (!asking) {
      std::this_thread::yield();
    }
    throw std::runtime_error("make");
  };
  race([&](int) { making = asking = false; },
       [&](int) {
         try {
           (void)cache.get(7, fail);
         } catch (const std::runtime_error&) {
           ++failures;
         }
       },
       [&](int) {
         while (!making) {
           std::this_thread::yield();
         }
         asking = true;
         made = cache.get(7, [&] { return make_in(f); });
       },
       [&](int) {
         CHECK(cache.find(7).is_same(made));
         made.reset();
         CHECK_FALSE(cache.find(7));
       });
  CHECK(failures == rounds());
}

TEST_CASE("weak cache: a find racing with the last reference locks or does not") {
  DomainFixture f;
  WeakCache<int> cache;
  Storage strong;
  Storage found;
  race(
      [&](int i) {
        strong = cache.get(i % 20, [&] { return make_in(f); });
        *static_cast<int*>(strong.data()) = i;
      },
      [&](int) { strong.reset(); }, [&](int i) { found = cache.find(i % 20); },
      [&](int i) {
        if (found) {
          CHECK(*static_cast<int*>(found.data()) == i);
        }
        found.reset();
        CHECK_FALSE(cache.find(i % 20));
      });
  CHECK(f.domain->stats().storages_live == 0);
}

TEST_CASE("weak cache: it and its weak references may outlive the runtime") {
  WeakCache<int> cache;
  WeakStorage weak;
  std::weak_ptr<Domain> domain;
  {
    DomainFixture f;
    domain = f.domain;
    const Storage made = cache.get(1, [&] { return make_in(f); });
    weak = WeakStorage(made);
    CHECK_FALSE(weak.expired());
  }
  CHECK(weak.expired());
  CHECK_FALSE(weak.lock());
  CHECK_FALSE(cache.find(1));
  CHECK_FALSE(domain.expired());  // the struct behind the weak references is its
  weak = WeakStorage();
  cache.clear();
  CHECK(domain.expired());
}

namespace {

// What a finalizer of the tests below does and notes.
struct Finalizing {
  DomainFixture f;
  WeakStorage self;
  WeakCache<int> cache;
  std::vector<int> order;
  bool locked = false;
  bool found = false;
};

template <int number>
void note(void* context) noexcept {
  auto& test = *static_cast<Finalizing*>(context);
  test.order.push_back(number);
  test.locked = test.locked || static_cast<bool>(test.self.lock());
  test.found = test.found || static_cast<bool>(test.cache.find(1));
}

// Makes and drops storages, one of them with a finalizer of its own.
void make_others(void* context) noexcept {
  auto& test = *static_cast<Finalizing*>(context);
  Storage other = make_in(test.f);
  other.add_finalizer(note<10>, context);
  const Storage again = test.cache.get(1, [&] { return make_in(test.f); });
  CHECK(test.cache.find(1).is_same(again));
  other.reset();
  test.order.push_back(11);
}

}  // namespace

TEST_CASE("finalizers: in order, once each, and the storage is gone for weak references") {
  Finalizing test;
  Storage dying = test.cache.get(1, [&] { return make_in(test.f); });
  test.self = WeakStorage(dying);
  dying.add_finalizer(note<1>, &test);
  dying.add_finalizer(note<2>, &test);
  dying.add_finalizer(note<1>, &test);  // the same registered again is one
  dying.add_finalizer(note<3>, &test);
  Storage copy = dying;
  dying.reset();
  CHECK(test.order.empty());
  copy.reset();
  CHECK(test.order == std::vector<int>{1, 2, 3});
  CHECK_FALSE(test.locked);
  CHECK_FALSE(test.found);
}

TEST_CASE("finalizers: they may make and drop storages, and use the cache for the same key") {
  Finalizing test;
  Storage dying = test.cache.get(1, [&] { return make_in(test.f); });
  test.self = WeakStorage(dying);
  dying.add_finalizer(note<1>, &test);
  dying.add_finalizer(make_others, &test);
  dying.add_finalizer(note<2>, &test);
  dying.reset();
  CHECK(test.order == std::vector<int>{1, 10, 11, 2});
  CHECK_FALSE(test.locked);
  CHECK(test.f.domain->stats().storages_live == 0);
}

TEST_CASE("finalizers: one that takes a while holds its iteration open, and nobody else up") {
  DomainFixture f;
  CloseSeries series(f.domain, {.deadline = forever});
  WeakCache<int> cache;
  struct Slow {
    std::atomic<bool> begun{false};
    std::atomic<bool> go_on{false};
    std::atomic<bool> done{false};
  } slow;
  OpenOwner it(series, 0, Place::here());
  Storage dying = cache.get(1, [] { return DomainFixture::make(); });
  dying.add_finalizer(
      [](void* context) noexcept {
        auto& state = *static_cast<Slow*>(context);
        state.begun = true;
        while (!state.go_on) {
          std::this_thread::yield();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        state.done = true;
      },
      &slow);
  const std::jthread dropper([&] { dying.reset(); });
  while (!slow.begun) {
    std::this_thread::yield();
  }
  // It waits for us, so what follows waits for nobody.
  CHECK_FALSE(cache.find(1));
  Storage next = cache.get(1, [] { return DomainFixture::make(); });
  next.add_finalizer([](void*) noexcept {}, nullptr);
  next.reset();
  CHECK_FALSE(slow.done);
  slow.go_on = true;
  CHECK(it.close().clean());
  CHECK(slow.done);
}
