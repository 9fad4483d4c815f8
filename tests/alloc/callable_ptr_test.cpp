// SPDX-License-Identifier: Apache-2.0
// The slow pointer: any callable, one node, counted; and that nothing else is slow. [alloc.ptr]
#include "heap_fixture.h"
#include "support/abort.h"
#include "support/malloc_interposer.h"

#include <ebb/alloc/callable_ptr.h>

#include <memory>
#include <new>
#include <utility>

using ebb::DataPtr;

TEST_CASE("slow callable pointer: the callable runs once, with the data") {
  int value = 0;
  int runs = 0;
  void* got = nullptr;
  {
    DataPtr ptr = ebb::slow_callable_ptr(&value, [&](void* data) {
      ++runs;
      got = data;
    });
    CHECK(ptr.get() == &value);
    CHECK(ptr.device() == ebb::cpu);
    const DataPtr moved = std::move(ptr);
    CHECK(runs == 0);
  }
  CHECK(runs == 1);
  CHECK(got == &value);
}

TEST_CASE("slow callable pointer: it runs for null data too") {
  int runs = 0;
  ebb::slow_callable_ptr(nullptr, [&](void* data) { runs += data == nullptr ? 1 : 0; }).reset();
  CHECK(runs == 1);
}

TEST_CASE("slow callable pointer: what it captured lives as long as it does") {
  auto shared = std::make_shared<int>(5);
  {
    const DataPtr ptr = ebb::slow_callable_ptr(shared.get(), [shared](void*) {});
    CHECK(shared.use_count() == 2);
  }
  CHECK(shared.use_count() == 1);
  auto unique = std::make_unique<int>(6);
  int* data = unique.get();
  const DataPtr ptr = ebb::slow_callable_ptr(data, [held = std::move(unique)](void*) {});
  CHECK(*static_cast<int*>(ptr.get()) == 6);
}

TEST_CASE("slow callable pointer: each is counted and is one heap call") {
  const std::uint64_t count = ebb::slow_callable_ptrs();
  const auto before = ebb::test::heap_calls_of_this_thread();
  int value = 0;
  for (int i = 0; i < 10; ++i) {
    const DataPtr ptr = ebb::slow_callable_ptr(&value, [](void*) {});
  }
  const auto after = ebb::test::heap_calls_of_this_thread();
  CHECK(ebb::slow_callable_ptrs() == count + 10);
  if (ebb::test::heap_calls_counted()) {
    CHECK(after.allocations == before.allocations + 10);
    CHECK(after.frees == before.frees + 10);
  }
}

TEST_CASE("slow callable pointer: a callable that cannot be made leaves the data alone") {
  struct Throws {
    int* runs;
    explicit Throws(int* counter) : runs(counter) {}
    Throws(const Throws& other) = default;
    Throws& operator=(const Throws&) = delete;
    Throws(Throws&& other) : runs(other.runs) { throw std::bad_alloc(); }
    Throws& operator=(Throws&&) = delete;
    ~Throws() = default;
    void operator()(void* /*data*/) const { ++*runs; }
  };
  int runs = 0;
  int value = 0;
  const std::uint64_t count = ebb::slow_callable_ptrs();
  const Throws release(&runs);
  CHECK_THROWS_AS(ebb::slow_callable_ptr(&value, release), std::bad_alloc);
  CHECK(runs == 0);
  CHECK(ebb::slow_callable_ptrs() == count);
}

TEST_CASE("data pointer: a use that acts aborts after a move, and says which") {
  int value = 0;
  static constexpr ebb::PtrOps ops{nullptr, "borrowed"};
  DataPtr ptr(&value, &value, ops, ebb::cpu);
  const DataPtr moved = std::move(ptr);
  // NOLINTBEGIN(bugprone-use-after-move,clang-analyzer-cplusplus.Move): that is the fact
  CHECK(ptr.ops() == nullptr);
  CHECK(ptr.context_as<int>(ops) == nullptr);
  CHECK(ebb::test::abort_message([&] {
          ptr.release_context();
        }).find("[DataPtr::release_context] the pointer was moved from") != std::string::npos);
  CHECK(ebb::test::abort_message([&] {
          ptr.compare_exchange_ops(ops, ops);
        }).find("[DataPtr::compare_exchange_ops]") != std::string::npos);
  ptr.reset();
  // NOLINTEND(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  CHECK(ebb::test::abort_message([&] { ptr.release_context(); }).empty());
  CHECK(ebb::test::abort_message([] { DataPtr().release_context(); }).empty());
}

TEST_CASE("data pointer: giving up a context that is not there keeps the release") {
  static int released = 0;
  static constexpr ebb::PtrOps ops{[](void*, void*) noexcept { ++released; }, "counted"};
  int value = 0;
  {
    DataPtr ptr(&value, nullptr, ops, ebb::cpu);
    CHECK(ptr.release_context() == nullptr);
    CHECK(ptr.ops() == &ops);
  }
  CHECK(released == 1);
}
