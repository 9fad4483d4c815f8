// SPDX-License-Identifier: Apache-2.0
// Everything that may touch a storage's counts and owner at once: handles and weak references come
// and go, refused requests scan all storages, iterations adopt, others keep. Run under
// ThreadSanitizer too. [gc.count]
#include "alloc/heap_fixture.h"
#include "domain_fixture.h"

#include <ebb/alloc/error.h>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

using ebb::Bytes;
using ebb::Storage;
using ebb::WeakStorage;
using namespace ebb::literals;

namespace {

// Where the threads leave handles for each other.
struct Shelf {
  struct Place {
    std::mutex mutex;
    Storage strong;
    WeakStorage weak;
  };
  std::array<Place, 8> places;

  void put(std::size_t at, Storage strong, WeakStorage weak) {
    const std::lock_guard lock(places[at].mutex);
    std::swap(places[at].strong, strong);
    std::swap(places[at].weak, weak);
  }
  Storage copy(std::size_t at) {
    const std::lock_guard lock(places[at].mutex);
    return places[at].strong;
  }
  WeakStorage weak(std::size_t at) {
    const std::lock_guard lock(places[at].mutex);
    return places[at].weak;
  }
};

void count_one(void* counter) noexcept {
  static_cast<std::atomic<std::uint64_t>*>(counter)->fetch_add(1, std::memory_order_relaxed);
}

struct Program {
  std::shared_ptr<ebb::Domain> domain =
      ebb::Domain::make({.log = [](ebb::LogLevel, std::string_view) {}, .memory_limit = 64_MiB});
  Shelf shelf;
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> finalizers_added{0};
  std::atomic<std::uint64_t> finalizers_run{0};
  std::atomic<std::uint64_t> torn{0};

  // A storage's bytes all hold one value, for as long as anybody has it.
  void look_at(const Storage& storage) {
    const auto* bytes = static_cast<const unsigned char*>(storage.data());
    torn += bytes[0] == bytes[storage.bytes().count() - 1] ? 0u : 1u;
  }

  void handle(std::mt19937_64& random, std::uint64_t number) {
    const std::size_t at = random() % shelf.places.size();
    switch (random() % 8) {
      case 0:
      case 1: {
        const Bytes bytes{random() % 5 == 0 ? 20000 : 1 + random() % 3000};
        Storage fresh = Storage::make(ebb::Owner::current("make"), bytes, ebb::default_align_cpu,
                                      {ebb::Place::here()});
        std::memset(fresh.data(), static_cast<int>(number), bytes.count());
        if (random() % 2 == 0) {
          ++finalizers_added;
          fresh.add_finalizer(count_one, &finalizers_run);
        }
        WeakStorage weak;
        if (random() % 2 == 0) {
          weak = WeakStorage(fresh);
        }
        shelf.put(at, random() % 3 != 0 ? fresh : Storage(), std::move(weak));
        break;
      }
      case 2:
      case 3:
        if (const Storage storage = shelf.copy(at)) {
          look_at(storage);
        }
        break;
      case 4:
      case 5:
        if (const Storage storage = shelf.weak(at).lock()) {
          look_at(storage);
        }
        break;
      case 6:
        shelf.put(at, {}, {});
        break;
      default:
        if (Storage storage = shelf.copy(at)) {
          storage.transfer(random() % 2 == 0 ? domain->long_lived() : ebb::Owner::current("make"));
        }
    }
  }
};

}  // namespace

TEST_CASE("counts: handles, weak references, scans, keeps and adoptions at once") {
  const std::uint64_t seed = ebb::test::test_seed();
  INFO("EBB_TEST_SEED=" << seed);
  Program program;
  const std::uint64_t rounds = ebb::test::stress(20000);
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      ebb::CloseSeries series(program.domain, {.deadline = ebb::Milliseconds(0), .warmup = 1000});
      for (std::uint64_t i = 0; i < rounds / 20; ++i) {
        ebb::OpenOwner iteration(series, i, ebb::Place::here());
        for (std::uint64_t k = 0; k < 20; ++k) {
          program.handle(random, i + k);
        }
        iteration.close();
      }
    });
  }
  std::jthread scanner([&] {
    const ebb::OwnerScope scope(program.domain->long_lived());
    while (!program.done) {
      try {
        ebb::test::DomainFixture::make(128_MiB);
      } catch (const ebb::OutOfMemory&) {
      }
    }
  });
  threads.clear();
  program.done = true;
  scanner.join();
  for (std::size_t at = 0; at < program.shelf.places.size(); ++at) {
    program.shelf.put(at, {}, {});
  }
  CHECK(program.torn == 0);
  CHECK(program.finalizers_run == program.finalizers_added);
  CHECK(program.domain->stats().storages_live == 0);
  CHECK(program.domain->stats().adopted_live == 0);
  CHECK(program.domain->stats().adopted_bytes == Bytes{0});
  program.domain->trim();  // takes back what came to parked heaps
  CHECK(program.domain->memory().blocks_live == 0);
  program.domain->shutdown();
}
