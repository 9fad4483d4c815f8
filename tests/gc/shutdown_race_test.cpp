// SPDX-License-Identifier: Apache-2.0
// A runtime, or a loader's pool, that ends while other threads take heaps from it. [rt.exit]
#include "domain_fixture.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::DomainFixture;

namespace {

constexpr int rounds = 300;

// Makes storages under owner, each by a heap that is taken and parked again, until it is refused.
// Returns how many it made.
int make_until_refused(const Owner& owner) {
  for (int made = 0;;) {
    const OwnerScope scope(owner, HeapStay::with_scope);
    try {
      const Storage storage = DomainFixture::make();
      made += storage.data() != nullptr ? 1 : 0;
    } catch (const std::invalid_argument&) {
      return made;
    }
  }
}

}  // namespace

TEST_CASE("shutdown race: making storages while the runtime ends is refused, not undefined") {
  int made = 0;
  for (int round = 0; round < rounds; ++round) {
    DomainFixture f;
    std::atomic<int> ready{0};
    std::vector<std::jthread> makers;
    std::atomic<int> count{0};
    for (int n = 0; n < 2; ++n) {
      makers.emplace_back([&] {
        ++ready;
        count += make_until_refused(f.domain->long_lived());
      });
    }
    while (ready < 2 || (round % 2 == 0 && f.domain->memory().allocations == 0)) {
      std::this_thread::yield();
    }
    f.domain->shutdown();
    makers.clear();
    made += count;
    CHECK(f.domain->memory().heaps == 0);
  }
  CHECK(made > 0);
}

TEST_CASE("shutdown race: a loader's pool that goes while others make for its owner") {
  for (int round = 0; round < rounds; ++round) {
    DomainFixture f;
    std::atomic<bool> ready{false};
    std::atomic<bool> stop{false};
    std::jthread maker;
    {
      Pool pool = f.domain->make_pool("loader", Bytes{0});
      const Owner owner = f.domain->open_loader_owner(pool);
      maker = std::jthread([&, owner] {
        ready = true;
        while (!stop) {
          const OwnerScope scope(owner, HeapStay::with_scope);
          try {
            const Storage storage = DomainFixture::make();  // the runtime's once the loader is gone
          } catch (const std::invalid_argument&) {
          }
        }
      });
      while (!ready) {
        std::this_thread::yield();
      }
      f.domain->close_loader_owner(owner);
    }
    stop = true;
    maker.join();
  }
}
