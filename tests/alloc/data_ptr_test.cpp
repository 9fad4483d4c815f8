// SPDX-License-Identifier: Apache-2.0
// The supervised pointer's facts, without and with a heap behind it. [alloc.ptr]
#include "heap_fixture.h"
#include "support/malloc_interposer.h"

#include <ebb/alloc/block.h>
#include <ebb/alloc/data_ptr.h>

#include <type_traits>
#include <utility>
#include <vector>

using ebb::DataPtr;

namespace {

struct Counted {
  int released = 0;
  void* data = nullptr;
};

constexpr ebb::PtrOps count_ops{[](void* context, void* data) noexcept {
                                  auto* counted = static_cast<Counted*>(context);
                                  ++counted->released;
                                  counted->data = data;
                                },
                                "counted"};
constexpr ebb::PtrOps other_ops{[](void*, void*) noexcept {}, "other"};
constexpr ebb::PtrOps borrowed_ops{nullptr, "borrowed"};

}  // namespace

TEST_CASE("data pointer: 32 bytes and move-only") {
  static_assert(sizeof(DataPtr) == 32);
  static_assert(!std::is_copy_constructible_v<DataPtr> && !std::is_copy_assignable_v<DataPtr>);
  static_assert(std::is_nothrow_move_constructible_v<DataPtr> &&
                std::is_nothrow_move_assignable_v<DataPtr>);
  CHECK_FALSE(DataPtr{});
}

TEST_CASE("data pointer: release runs exactly once") {
  Counted counted;
  int value = 0;
  {
    DataPtr first(&value, &counted, count_ops, ebb::cpu);
    DataPtr second = std::move(first);
    // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): that is the fact
    CHECK(first.get() == nullptr);
    CHECK_FALSE(first);
    CHECK(second.get() == &value);
    DataPtr third;
    third = std::move(second);
    CHECK(counted.released == 0);
    third.reset();
    CHECK(counted.released == 1);
    CHECK(counted.data == &value);
    CHECK_FALSE(third);
  }
  CHECK(counted.released == 1);
}

TEST_CASE("data pointer: assignment releases what was held; to itself it does nothing") {
  Counted counted;
  Counted kept;
  int value = 0;
  DataPtr ptr(&value, &counted, count_ops, ebb::cpu);
  ptr = DataPtr(&value, &kept, count_ops, ebb::cpu);
  CHECK(counted.released == 1);
  DataPtr& same = ptr;
  ptr = std::move(same);
  CHECK(kept.released == 0);
  CHECK(ptr.get() == &value);
}

TEST_CASE("data pointer: a context without data is released as well") {
  Counted counted;
  {
    DataPtr ptr(nullptr, &counted, count_ops, ebb::cpu);
    CHECK_FALSE(ptr);
  }
  CHECK(counted.released == 1);
  CHECK(counted.data == nullptr);
}

TEST_CASE("data pointer: an empty release means not mine") {
  int value = 0;
  DataPtr ptr(&value, nullptr, borrowed_ops, ebb::cpu);
  CHECK(ptr.get() == &value);
  ptr.reset();
  CHECK(ptr.get() == nullptr);
}

TEST_CASE("data pointer: the typed context comes back for the same table only") {
  Counted counted;
  int value = 0;
  const DataPtr ptr(&value, &counted, count_ops, ebb::cpu);
  CHECK(ptr.context_as<Counted>(count_ops) == &counted);
  CHECK(ptr.context_as<Counted>(other_ops) == nullptr);
  CHECK(ebb::record_of(ptr) == nullptr);
}

TEST_CASE("data pointer: operations are replaced when they are still expected") {
  Counted counted;
  int value = 0;
  DataPtr ptr(&value, &counted, count_ops, ebb::cpu);
  CHECK_FALSE(ptr.compare_exchange_ops(other_ops, borrowed_ops));
  CHECK(ptr.ops() == &count_ops);
  CHECK(ptr.compare_exchange_ops(count_ops, other_ops));
  ptr.reset();
  CHECK(counted.released == 0);
}

TEST_CASE("data pointer: a context that was given up is not released") {
  Counted counted;
  int value = 0;
  {
    DataPtr ptr(&value, &counted, count_ops, ebb::cpu);
    CHECK(ptr.release_context() == &counted);
    CHECK(ptr.get() == &value);
    CHECK(ptr.release_context() == nullptr);
  }
  CHECK(counted.released == 0);
}

TEST_CASE("data pointer: a block goes back to its heap") {
  ebb::test::OwnHeap own;
  {
    const DataPtr ptr = ebb::own_block(own.take(1000));
    CHECK(ptr.device() == ebb::cpu);
    REQUIRE(ebb::record_of(ptr) != nullptr);
    CHECK(ebb::record_of(ptr)->bytes == ebb::Bytes{1000});
    CHECK(ebb::record_of(ptr)->top == &own.heap);
    CHECK(own.heap.stats().blocks_live == 1);
  }
  CHECK(own.heap.stats().blocks_live == 0);
  CHECK_FALSE(ebb::own_block({}));
}

TEST_CASE("data pointer: making, moving and dropping never touches the heap") {
  ebb::test::OwnHeap own;
  ebb::own_block(own.take(256)).reset();  // the heap has its first records and slab
  ebb::own_block(own.take(1 << 20)).reset();
  if (ebb::test::heap_calls_counted()) {
    const auto before = ebb::test::heap_calls_of_this_thread();
    std::vector<int> control(100);
    CHECK(ebb::test::heap_calls_of_this_thread().allocations == before.allocations + 1);
  }
  const auto before = ebb::test::heap_calls();
  Counted counted;
  int value = 0;
  for (int i = 0; i < 1000; ++i) {
    DataPtr ptr(&value, &counted, count_ops, ebb::cpu);
    DataPtr moved = std::move(ptr);
    DataPtr block = ebb::own_block(own.take(i % 2 == 0 ? 256 : 1 << 20));
    DataPtr block_moved = std::move(block);
  }
  const auto after = ebb::test::heap_calls();
  CHECK(after.allocations == before.allocations);
  CHECK(after.frees == before.frees);
  CHECK(counted.released == 1000);
}

TEST_CASE("data pointer: one that goes with what the assignment releases is taken first") {
  struct Node {
    DataPtr next;
  };
  static constexpr ebb::PtrOps node_ops{
      [](void* context, void*) noexcept { delete static_cast<Node*>(context); }, "node"};
  Counted counted;
  auto* node = new Node{DataPtr(nullptr, &counted, count_ops, ebb::cpu)};
  DataPtr head(nullptr, node, node_ops, ebb::cpu);
  head = std::move(node->next);
  CHECK(head.context() == &counted);
  CHECK(counted.released == 0);
  head.reset();
  CHECK(counted.released == 1);
}
