// SPDX-License-Identifier: Apache-2.0
// A refused request calls back, waits, searches again and fails in time. [alloc.adaptor]
#include "heap_fixture.h"

#include <ebb/alloc/fault.h>
#include <ebb/alloc/limit.h>
#include <ebb/alloc/retry.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

using ebb::Block;
using ebb::Bytes;
using ebb::Limit;
using ebb::Retry;
using ebb::test::OwnHeap;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

struct Calls {
  int count = 0;
  std::uint32_t last_attempt = 0;
  Bytes asked;
  Retry* retry = nullptr;
  Block to_free;
  std::uint32_t free_at = 0;

  static void refused(void* context, Bytes asked, std::uint32_t attempt) noexcept {
    auto& calls = *static_cast<Calls*>(context);
    ++calls.count;
    calls.last_attempt = attempt;
    calls.asked = asked;
    if (attempt == calls.free_at) {
      calls.retry->deallocate(calls.to_free);
    }
  }
};

}  // namespace

TEST_CASE("retry: a granted request is not retried") {
  OwnHeap own;
  Calls calls;
  Retry retry(own.heap, {.on_refusal = Calls::refused, .context = &calls});
  retry.deallocate(retry.allocate(Bytes{100}));
  CHECK(calls.count == 0);
  CHECK(retry.refused() == 0);
}

TEST_CASE("retry: what the callback frees is found, at whichever attempt") {
  for (std::uint32_t free_at = 1; free_at <= 3; ++free_at) {
    OwnHeap own;
    Limit limit(own.heap, Bytes{1000});
    Calls calls;
    Retry retry(limit, {.on_refusal = Calls::refused, .context = &calls, .attempts = 3});
    calls.retry = &retry;
    calls.to_free = retry.allocate(Bytes{1000});
    calls.free_at = free_at;
    const Block block = retry.try_allocate(Bytes{600});
    CHECK(block);
    CHECK(calls.count == static_cast<int>(free_at));
    CHECK(calls.asked == Bytes{600});
    CHECK(retry.refused() == 1);
    CHECK(retry.recovered() == 1);
    retry.deallocate(block);
    CHECK(limit.live() == Bytes{0});
  }
}

TEST_CASE("retry: it fails after the last attempt and says so through the stack") {
  OwnHeap own({.name = "heap"});
  Limit limit(own.heap, Bytes{1000});
  Calls calls;
  Retry retry(limit, {.on_refusal = Calls::refused, .context = &calls, .attempts = 5});
  try {
    retry.deallocate(retry.allocate(Bytes{1001}));
    FAIL("the limit was not kept");
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().resource == "retry(limit(heap))");
    CHECK(error.info().limit == Bytes{1000});
  }
  CHECK(calls.count == 5);
  CHECK(calls.last_attempt == 5);
  CHECK(retry.recovered() == 0);
}

TEST_CASE("retry: no attempts means no retry") {
  OwnHeap own;
  ebb::Fault fault(own.heap, {.at = 1});
  Retry retry(fault, {.attempts = 0});
  CHECK_FALSE(retry.try_allocate(Bytes{1}));
  CHECK(fault.refused() == 1);
  CHECK(fault.candidates() == 1);
}

TEST_CASE("retry: a block given back by another thread ends the wait") {
  OwnHeap own;
  Limit limit(own.heap, Bytes{1000});
  Retry retry(limit, {.attempts = 1, .wait = std::chrono::minutes(10)});
  const Block held = retry.allocate(Bytes{1000});
  const auto start = Clock::now();
  std::jthread other([&] {
    while (retry.refused() == 0) {
      std::this_thread::yield();
    }
    retry.deallocate(held);
  });
  const Block block = retry.try_allocate(Bytes{1000});
  CHECK(block);
  CHECK(Clock::now() - start < std::chrono::minutes(5));
  retry.deallocate(block);
}

TEST_CASE("retry: frees and waits never miss each other") {
  OwnHeap own;
  Limit limit(own.heap, Bytes{1000});
  // A missed free would wait for the whole deadline, and the test with it.
  Retry retry(limit, {.attempts = 1, .wait = std::chrono::minutes(10)});
  const std::uint64_t rounds = ebb::test::stress(2000);
  std::atomic<void*> handed{nullptr};
  std::atomic<ebb::BlockRecord*> record{nullptr};
  std::jthread other([&] {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      ebb::BlockRecord* taken = nullptr;
      while ((taken = record.exchange(nullptr)) == nullptr) {
        std::this_thread::yield();
      }
      retry.deallocate(taken->block(handed.load()));
    }
  });
  Block block = retry.allocate(Bytes{1000});
  for (std::uint64_t i = 0; i < rounds; ++i) {
    handed = block.data;
    record = block.record;
    block = retry.try_allocate(Bytes{1000});
    REQUIRE(block);
  }
  retry.deallocate(block);
}

TEST_CASE("retry: the wait ends at its deadline") {
  OwnHeap own;
  Limit limit(own.heap, Bytes{1000});
  Retry retry(limit, {.attempts = 4, .wait = milliseconds(20)});
  const auto start = Clock::now();
  CHECK_FALSE(retry.try_allocate(Bytes{1001}));
  CHECK(Clock::now() - start >= milliseconds(20));
  CHECK(Clock::now() - start < std::chrono::minutes(1));  // 20 ms in all, not an attempt
}

TEST_CASE("retry: a negative wait is refused") {
  OwnHeap own;
  CHECK_THROWS_AS(Retry(own.heap, {.wait = milliseconds(-1)}), std::invalid_argument);
}
