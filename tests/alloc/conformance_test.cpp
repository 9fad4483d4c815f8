// SPDX-License-Identifier: Apache-2.0
// The conformance suite: what holds for every resource, and for every adaptor and stack of them
// over every resource. [alloc.resource] [alloc.adaptor]
#include "conformance.h"

#include "support/malloc_interposer.h"

#include <initializer_list>
#include <limits>
#include <random>
#include <set>
#include <thread>
#include <vector>

using ebb::Align;
using ebb::Block;
using ebb::Bytes;
using ebb::DataPtr;
using ebb::Resource;
using ebb::test::fill;
using ebb::test::for_each_stack;
using ebb::test::holds;
using ebb::test::Stack;

namespace {

using Sizes = std::initializer_list<std::size_t>;

constexpr std::size_t size_max = std::numeric_limits<std::size_t>::max();

void give_all(Resource& resource, std::vector<Block>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    CHECK(holds(blocks[i], i));
    resource.deallocate(blocks[i]);
  }
  blocks.clear();
}

void take(Resource& resource, std::vector<Block>& blocks, std::size_t size, std::size_t align) {
  const Block block = resource.allocate(Bytes{size}, Align{align});
  CHECK(block.bytes == Bytes{size});
  CHECK(block.align == Align{align});
  REQUIRE(block.record != nullptr);
  CHECK(block.record->top == &resource);
  CHECK(block.record->bytes == Bytes{size});
  CHECK(reinterpret_cast<std::uintptr_t>(block.data) % align == 0);
  fill(block, blocks.size());
  blocks.push_back(block);
}

// Sizes around the edges of slabs and pages, with and without a guard's canaries.
const std::vector<std::size_t>& edge_sizes() {
  static const std::vector<std::size_t> sizes = [] {
    std::vector<std::size_t> all;
    for (const std::size_t edge : Sizes{64, 128, 1024, 4096, 8192, 16384}) {
      for (const std::size_t around : Sizes{0, 32, 96, 128}) {
        const std::size_t middle = edge > around ? edge - around : 1;
        all.insert(all.end(), {middle - 1, middle, middle + 1});
      }
    }
    return all;
  }();
  return sizes;
}

// Takes and gives blocks at random; whoever overlaps another finds its bytes changed.
void run_random(Resource& resource, std::mt19937_64& random) {
  std::vector<std::pair<Block, std::uint64_t>> live;
  for (std::uint64_t step = 0; step < 300; ++step) {
    if (live.empty() || random() % 5 < 3) {
      const std::size_t size = random() % (random() % 8 == 0 ? 40000 : 700);
      const Block block = resource.allocate(Bytes{size}, Align{std::size_t{1} << random() % 10});
      fill(block, step);
      live.emplace_back(block, step);
    } else {
      std::swap(live[random() % live.size()], live.back());
      CHECK(holds(live.back().first, live.back().second));
      resource.deallocate(live.back().first);
      live.pop_back();
    }
  }
  for (const auto& [block, number] : live) {
    CHECK(holds(block, number));
    resource.deallocate(block);
  }
}

void run_round(Resource& resource) {
  Block blocks[12];
  for (std::size_t i = 0; i < 12; ++i) {
    blocks[i] = resource.try_allocate(Bytes{i * i * 50}, Align{std::size_t{1} << i});
  }
  for (const Block& block : blocks) {
    ebb::own_block(block).reset();
  }
}

}  // namespace

TEST_CASE_TEMPLATE("conformance: zero bytes are a block of their own", Base, EBB_TEST_BASES) {
  for_each_stack<Base>([](Base& base, Stack& stack) {
    std::set<void*> addresses;
    std::vector<Block> blocks;
    for (int i = 0; i < 20; ++i) {
      take(stack.top(), blocks, 0, std::size_t{1} << i % 8);
      addresses.insert(blocks.back().data);
    }
    CHECK(addresses.size() == 20);
    CHECK(addresses.count(nullptr) == 0);
    CHECK(base.blocks_live() == 20);
    give_all(stack.top(), blocks);
  });
}

TEST_CASE_TEMPLATE("conformance: every alignment up to 64 KiB is kept", Base, EBB_TEST_BASES) {
  for_each_stack<Base>([](Base& /*base*/, Stack& stack) {
    std::vector<Block> blocks;
    for (std::size_t align = 1; align <= 65536; align *= 2) {
      take(stack.top(), blocks, 1, align);
      take(stack.top(), blocks, 5000, align);
    }
    give_all(stack.top(), blocks);
  });
}

TEST_CASE_TEMPLATE("conformance: sizes at the edges of slabs keep their bytes", Base,
                   EBB_TEST_BASES) {
  for_each_stack<Base>([](Base& /*base*/, Stack& stack) {
    std::vector<Block> blocks;
    for (const std::size_t size : edge_sizes()) {
      take(stack.top(), blocks, size, 64);
    }
    give_all(stack.top(), blocks);
  });
}

TEST_CASE_TEMPLATE("conformance: live blocks never overlap", Base, EBB_TEST_BASES) {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for_each_stack<Base>([&](Base& /*base*/, Stack& stack) { run_random(stack.top(), random); });
}

TEST_CASE_TEMPLATE("conformance: what cannot be had is refused and changes nothing", Base,
                   EBB_TEST_BASES) {
  for_each_stack<Base>([](Base& base, Stack& stack) {
    std::vector<Block> blocks;
    take(stack.top(), blocks, 100, 64);
    for (const std::size_t size : Sizes{size_max, size_max - 31, size_max - 63, size_max - 64,
                                        size_max / 2, std::size_t{1} << 47}) {
      for (const std::size_t align : Sizes{1, 64, 65536}) {
        CHECK_FALSE(stack.top().try_allocate(Bytes{size}, Align{align}));
      }
    }
    CHECK_FALSE(stack.top().try_allocate(Bytes{1}, Align{std::size_t{1} << 47}));
    CHECK(base.blocks_live() == 1);
    try {
      stack.top().allocate(Bytes{std::size_t{1} << 47});
      FAIL_CHECK("128 TiB were granted");
    } catch (const ebb::OutOfMemory& error) {
      CHECK(error.info().asked == Bytes{std::size_t{1} << 47});
      CHECK(error.info().resource.find(base.resource().name()) != std::string::npos);
      CHECK(error.info().resource.find(stack.top().name()) == 0);
    }
    give_all(stack.top(), blocks);
  });
}

TEST_CASE_TEMPLATE("conformance: any thread may give back", Base, EBB_TEST_BASES) {
  for_each_stack<Base>([](Base& /*base*/, Stack& stack) {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < 60; ++i) {
      take(stack.top(), blocks, i * 150, 64);
    }
    const auto give = [&](std::size_t first) {
      for (std::size_t i = first; i < blocks.size(); i += 2) {
        stack.top().deallocate(blocks[i]);
      }
    };
    std::jthread first(give, 0);
    std::jthread second(give, 1);
  });
}

TEST_CASE_TEMPLATE("conformance: an owned block is released once, through every layer", Base,
                   EBB_TEST_BASES) {
  for_each_stack<Base>([](Base& base, Stack& stack) {
    {
      DataPtr ptr = ebb::own_block(stack.top().allocate(Bytes{1000}));
      CHECK(ebb::record_of(ptr)->top == &stack.top());
      CHECK(ebb::record_of(ptr)->bytes == Bytes{1000});
      DataPtr moved = std::move(ptr);
      ptr = DataPtr();
      CHECK(base.blocks_live() == 1);
      moved.reset();
      stack.settle();
      CHECK(base.blocks_live() == 0);
    }
    CHECK(base.blocks_live() == 0);
  });
}

TEST_CASE_TEMPLATE("conformance: a steady program makes no heap call", Base, EBB_TEST_BASES) {
  if (Base::calls_heap) {
    return;
  }
  for_each_stack<Base>([](Base& /*base*/, Stack& stack) {
    for (int i = 0; i < 20; ++i) {
      run_round(stack.top());
    }
    const auto before = ebb::test::heap_calls_of_this_thread();
    for (int i = 0; i < 20; ++i) {
      run_round(stack.top());
      // A refusal makes none either.
      static_cast<void>(stack.top().try_allocate(Bytes{size_max}).data);
    }
    const auto after = ebb::test::heap_calls_of_this_thread();
    CHECK(after.allocations == before.allocations);
    CHECK(after.frees == before.frees);
  });
}
