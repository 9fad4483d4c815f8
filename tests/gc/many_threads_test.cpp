// SPDX-License-Identifier: Apache-2.0
// Memory among many threads: some make, others drop, thousands are born and die. What is reserved
// follows what is live, and idle pages go back. [alloc.heap]
#include "domain_fixture.h"
#include "support/process_status.h"
#include "support/sanitized.h"

#include <doctest/doctest.h>

#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using ebb::Bytes;
using ebb::Storage;
using ebb::test::DomainFixture;

namespace {

Storage make_filled(std::size_t bytes) {
  Storage storage = DomainFixture::make(Bytes{bytes});
  std::memset(storage.data(), 1, bytes);
  return storage;
}

std::size_t size_of(std::size_t number) {
  return number % 3 == 0 ? 100 + number * 37 % 4000 : 5000 + number * 997 % 60000;
}

class Box {
 public:
  void put(Storage storage) {
    const std::lock_guard lock(mutex_);
    storages_.push_back(std::move(storage));
  }
  std::vector<Storage> take_all() {
    const std::lock_guard lock(mutex_);
    return std::exchange(storages_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Storage> storages_;
};

double ratio(std::size_t a, std::size_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

TEST_CASE("many threads: sixteen make storages, one drops them, and what is reserved follows") {
  DomainFixture fixture;
  Box box;
  std::atomic<int> making{16};
  std::vector<std::jthread> makers;
  for (std::size_t t = 0; t < 16; ++t) {
    makers.emplace_back([&, t] {
      const ebb::OwnerScope scope(fixture.domain->long_lived());
      for (std::size_t i = 0; i < 500; ++i) {
        box.put(make_filled(size_of(i * 16 + t)));
      }
      --making;
    });
  }
  std::size_t dropped = 0;
  std::size_t live_most = 0;
  while (making != 0) {
    live_most = std::max(live_most, fixture.domain->memory().live.count());
    dropped += box.take_all().size();
    std::this_thread::yield();
  }
  makers.clear();
  dropped += box.take_all().size();
  CHECK(dropped == 16 * 500);
  CHECK(fixture.domain->stats().storages_live == 0);
  const std::size_t idle = fixture.domain->memory().reserved.count();
  fixture.domain->trim();
  CHECK(fixture.domain->memory().live == Bytes{0});
  CHECK(fixture.domain->memory().reserved.count() <= idle / 20);
}

TEST_CASE("many threads: two thousand are born and die, and what they left costs little more") {
  DomainFixture fixture;
  constexpr std::size_t threads = 2000;
  constexpr std::size_t at_once = 8;
  const std::size_t resident_before = ebb::test::self_status_bytes("VmRSS:");
  std::vector<Storage> kept(threads);
  for (std::size_t first = 0; first < threads; first += at_once) {
    std::vector<std::jthread> group;
    for (std::size_t t = first; t < first + at_once; ++t) {
      group.emplace_back([&, t] {
        const ebb::OwnerScope scope(fixture.domain->long_lived());
        std::vector<Storage> temporaries;
        for (std::size_t i = 0; i < 5; ++i) {
          temporaries.push_back(make_filled(size_of(t + i)));
        }
        kept[t] = make_filled(size_of(t));
      });
    }
  }
  const ebb::MemoryStats memory = fixture.domain->memory();
  CHECK(memory.heaps <= at_once + 2);  // those being trimmed are not waited for without end
  CHECK(memory.blocks_live == threads);
  CHECK(ratio(memory.reserved.count(), memory.live.count()) <= 1.25);
  if (!ebb::test::is_sanitized()) {
    // Stacks of threads that ended may stay with the system's library.
    constexpr std::size_t stacks = std::size_t{4} << 20;
    CHECK(ebb::test::self_status_bytes("VmRSS:") - resident_before <=
          memory.live.count() * 5 / 4 + stacks);
  }
  kept.clear();
  const std::size_t idle = fixture.domain->memory().reserved.count();
  const Bytes returned = fixture.domain->trim();
  CHECK(ratio(returned.count(), idle) >= 0.95);
  CHECK(fixture.domain->memory().live == Bytes{0});
}
