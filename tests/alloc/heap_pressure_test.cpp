// SPDX-License-Identifier: Apache-2.0
// Several threads under one limit: who fits is not refused for the sake of who does not, and idle
// pages that come late are found by who waits. Run under ThreadSanitizer too. [alloc.heap]
#include "heap_fixture.h"

#include <ebb/alloc/pool.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::stress;
using namespace ebb::literals;

TEST_CASE("pressure: a request that fits is not refused beside others that do not") {
  ebb::Pool pool(ebb::system_source(), {.limit = 64_MiB});
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> granted{0};
  std::vector<std::jthread> greedy;
  for (int i = 0; i < 2; ++i) {
    greedy.emplace_back([&] {
      ebb::Heap& heap = pool.acquire();
      while (!done) {
        granted += heap.try_allocate(65_MiB) ? 1u : 0u;
      }
      ebb::Pool::park(heap);
    });
  }
  ebb::Heap& heap = pool.acquire();
  std::uint64_t refused = 0;
  const std::uint64_t rounds = stress(20000);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    if (const Block block = heap.try_allocate(1_MiB)) {
      heap.deallocate(block);
      heap.trim();
    } else {
      ++refused;
    }
  }
  done = true;
  greedy.clear();
  ebb::Pool::park(heap);
  CHECK(refused == 0);
  CHECK(granted == 0);
}

TEST_CASE("pressure: idle pages of a parked heap serve all who need some of them") {
  ebb::Pool pool(ebb::system_source(), {.limit = 64_MiB});
  constexpr std::size_t takers = 3;
  std::atomic<std::uint64_t> refused{0};
  const std::uint64_t rounds = stress(20000) / 20;
  ebb::Heap& first = pool.acquire();
  std::barrier<> step(takers + 1);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < takers; ++t) {
    threads.emplace_back([&] {
      ebb::Heap& heap = pool.acquire();
      step.arrive_and_wait();  // all have a heap of their own
      for (std::uint64_t round = 0; round < rounds; ++round) {
        step.arrive_and_wait();  // the other heap is parked and has all the room
        const Block block = heap.try_allocate(10_MiB);
        step.arrive_and_wait();
        if (block) {
          heap.deallocate(block);
          heap.trim();
        } else {
          ++refused;
        }
        step.arrive_and_wait();
      }
      ebb::Pool::park(heap);
    });
  }
  step.arrive_and_wait();
  ebb::Heap* heap = &first;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    heap->deallocate(heap->allocate(60_MiB));
    ebb::Pool::park(*heap);
    step.arrive_and_wait();
    step.arrive_and_wait();
    step.arrive_and_wait();
    heap = &pool.acquire();
  }
  ebb::Pool::park(*heap);
  threads.clear();
  CHECK(refused == 0);
}

TEST_CASE("pressure: who waits for a limit finds pages that become idle while it waits") {
  ebb::Pool pool(ebb::system_source(), {.limit = 8_MiB, .limit_wait = std::chrono::seconds(5)});
  std::atomic<int> stage{0};
  std::jthread other([&] {
    ebb::Heap& heap = pool.acquire();
    const Block block = heap.allocate(6_MiB);
    stage = 1;
    // Sees the request to trim while there is nothing idle.
    for (int i = 0; i < 100; ++i) {
      heap.drain();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    heap.deallocate(block);
    while (stage == 1) {
      heap.drain();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ebb::Pool::park(heap);
  });
  while (stage == 0) {
    std::this_thread::yield();
  }
  ebb::Heap& heap = pool.acquire();
  const Block block = heap.try_allocate(6_MiB);
  CHECK(block);
  stage = 2;
  if (block) {
    heap.deallocate(block);
  }
  ebb::Pool::park(heap);
}
