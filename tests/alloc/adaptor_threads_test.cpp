// SPDX-License-Identifier: Apache-2.0
// Stacks of adaptors used by several threads at once: blocks are given back by other threads than
// took them, while the outermost layers' figures are read. [alloc.adaptor]
#include "conformance.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::fill;
using ebb::test::holds;
using ebb::test::Layer;
using ebb::test::Stack;

namespace {

constexpr std::uint64_t threads = 4;

struct Handed {
  Block block;
  std::uint64_t number;
};

// Blocks on their way from thread to thread, in no order.
class Crowd {
 public:
  // Returns one that was put earlier, or a false one while there are few.
  Handed exchange(const Handed& handed, std::uint64_t random) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(handed);
    if (waiting_.size() < 30) {
      return {};
    }
    std::swap(waiting_[random % waiting_.size()], waiting_.back());
    const Handed other = waiting_.back();
    waiting_.pop_back();
    return other;
  }
  std::vector<Handed> rest() { return std::move(waiting_); }

 private:
  std::mutex mutex_;
  std::vector<Handed> waiting_;
};

void give(ebb::Resource& resource, const Handed& handed, std::atomic<bool>& damaged) {
  if (!holds(handed.block, handed.number)) {
    damaged = true;
  }
  resource.deallocate(handed.block);
}

// Every thread takes and gives. The bottom is a resource that any thread may ask.
void run_crew(ebb::Resource& resource, std::uint64_t seed, std::atomic<bool>& damaged) {
  Crowd crowd;
  const std::uint64_t steps = ebb::test::stress(4000) / threads;
  {
    std::vector<std::jthread> crew;
    for (std::uint64_t t = 0; t < threads; ++t) {
      crew.emplace_back([&, t] {
        std::mt19937_64 random(seed + t);
        for (std::uint64_t step = 0; step < steps; ++step) {
          const Block block = resource.try_allocate(Bytes{random() % 2000},
                                                    ebb::Align{std::size_t{1} << random() % 8});
          if (!block) {
            continue;
          }
          fill(block, step);
          if (const Handed other = crowd.exchange({block, step}, random()); other.block) {
            give(resource, other, damaged);
          }
        }
      });
    }
  }
  for (const Handed& handed : crowd.rest()) {
    give(resource, handed, damaged);
  }
}

}  // namespace

TEST_CASE("adaptor threads: each adaptor, and all in two orders, keep blocks apart") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  for (const std::vector<Layer>& layers : ebb::test::stacks_all(false)) {
    ebb::test::PmrBase base;
    ebb::Stats bottom(base.resource());
    ebb::Fault fault(bottom, {.probability = 0.02, .seed = seed});
    Stack stack(fault, layers);
    const std::string name = stack.top().explain(Bytes{0}).resource;
    CAPTURE(name);
    std::atomic<bool> damaged{false};
    run_crew(stack.top(), seed, damaged);
    CHECK_FALSE(damaged.load());
    stack.settle();
    CHECK(bottom.figures().bytes.current == 0);
    CHECK(bottom.figures().blocks.current == 0);
    CHECK(base.blocks_live() == 0);
  }
}

TEST_CASE("adaptor threads: a heap's blocks are given back by others, all layers between") {
  ebb::test::HeapBase base;
  Stack stack(base.resource(), ebb::test::stacks_all(false).back());
  std::atomic<bool> damaged{false};
  const std::uint64_t rounds = std::max<std::uint64_t>(ebb::test::stress(4000) / 200, 1);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::vector<Handed> blocks;
    for (std::uint64_t i = 0; i < 200; ++i) {
      blocks.push_back({stack.top().allocate(Bytes{i * 37}), round + i});
      fill(blocks.back().block, round + i);
    }
    std::vector<std::jthread> crew;
    for (std::uint64_t t = 0; t < threads; ++t) {
      crew.emplace_back([&, t] {
        for (std::uint64_t i = t; i < blocks.size(); i += threads) {
          give(stack.top(), blocks[i], damaged);
        }
      });
    }
  }
  CHECK_FALSE(damaged.load());
  stack.settle();
  CHECK(base.blocks_live() == 0);
}
