// SPDX-License-Identifier: Apache-2.0
// Heaps between threads: frees by others, parking, pools that close first, cells that are walked
// over while they are made. Run under ThreadSanitizer too. [alloc.heap]
#include "heap_fixture.h"
#include "support/counting_source.h"
#include "support/delayed_source.h"

#include <ebb/alloc/pool.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::test::CountingSource;
using ebb::test::OwnHeap;

namespace {

// Where one thread puts blocks for others to free.
class Basket {
 public:
  void put(Block block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
  }
  bool take(Block& block) {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) {
      return false;
    }
    block = blocks_.back();
    blocks_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

void give_back(const Block& block) {
  block.record->top->deallocate(block);
}

std::size_t size_of(std::uint64_t number) {
  return number % 3 == 0 ? 5000 + number % 40000 : number * 37 % 4096;
}

}  // namespace

TEST_CASE("heap threads: blocks freed by others come back to their heap") {
  OwnHeap own;
  Basket basket;
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      Block block;
      while (true) {
        const bool last = done.load();
        if (basket.take(block)) {
          wrong += ebb::test::holds(block, block.bytes.count()) ? 0u : 1u;
          give_back(block);
        } else if (last) {
          return;
        }
      }
    });
  }
  const std::uint64_t count = ebb::test::stress(20000);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Block block = own.take(size_of(i));
    ebb::test::fill(block, block.bytes.count());
    basket.put(block);
  }
  done = true;
  others.clear();
  CHECK(wrong == 0);
  own.heap.drain();
  CHECK(own.heap.stats().live == Bytes{0});
  CHECK(own.heap.stats().blocks_live == 0);
  CHECK(own.heap.stats().foreign_frees == count);
}

TEST_CASE("heap threads: what others freed is used before the heap grows") {
  OwnHeap own;
  const Block block = own.take(1 << 20);
  const Bytes reserved = own.heap.stats().reserved;
  std::jthread([&] { own.heap.deallocate(block); }).join();
  CHECK(own.heap.stats().blocks_live == 1);  // not yet noticed
  const Block again = own.take(1 << 20);
  CHECK(again.data == block.data);
  CHECK(own.heap.stats().reserved == reserved);
  own.heap.deallocate(again);
}

TEST_CASE("heap threads: a heap is its owner's, and a parked one is handed on") {
  ebb::Pool pool(ebb::system_source(), {});
  ebb::Heap& heap = pool.acquire();
  CHECK(heap.is_mine());
  std::jthread([&] { CHECK_FALSE(heap.is_mine()); }).join();
  const Block block = heap.allocate(Bytes{8192});
  ebb::Pool::park(heap);
  CHECK_FALSE(heap.is_mine());
  std::jthread([&] {
    ebb::Heap& same = pool.acquire();
    CHECK(&same == &heap);
    CHECK(same.is_mine());
    same.deallocate(block);
    CHECK(same.stats().live == Bytes{0});
    CHECK(same.stats().foreign_frees == 0);
    ebb::Pool::park(same);
  }).join();
  CHECK(pool.stats().heaps == 1);
}

TEST_CASE("heap threads: heaps change hands while others free into them") {
  const ebb::test::OwnHeap keep_another_pool_alive;
  ebb::test::DelayedSource source(ebb::system_source(), std::chrono::microseconds(20));
  ebb::Pool pool(source, {.limit = Bytes{std::size_t{64} << 20}});
  Basket basket;
  std::vector<std::jthread> threads;
  const std::uint64_t rounds = ebb::test::stress(20000) / 100;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        ebb::Heap& heap = pool.acquire();
        for (std::uint64_t i = 0; i < 20; ++i) {
          if (const Block block = heap.try_allocate(Bytes{size_of(i * t + round)})) {
            ebb::test::fill(block, i);
            basket.put(block);
          }
        }
        ebb::Pool::park(heap);
        Block block;
        for (int i = 0; i < 20 && basket.take(block); ++i) {
          give_back(block);
        }
        if (round % 50 == 0) {
          pool.trim();
        }
      }
    });
  }
  threads.clear();
  Block block;
  while (basket.take(block)) {
    give_back(block);
  }
  pool.trim();
  CHECK(pool.stats().live == Bytes{0});
  CHECK(pool.stats().reserved == Bytes{0});
  CHECK(pool.stats().heaps <= 4);
}

TEST_CASE("heap threads: a heap outlives its pool until its last block and cell are freed") {
  for (std::uint64_t round = 0; round < ebb::test::stress(20000) / 200; ++round) {
    CountingSource source(ebb::system_source());
    std::atomic<int> gone{0};
    std::vector<Block> blocks;
    std::vector<ebb::Cell*> cells;
    ebb::Heap* heap = nullptr;
    {
      ebb::PoolOptions options;
      options.records = &source;
      options.keep_alive = std::shared_ptr<void>(&gone, [&source](void* flag) {
        // Dropped last: the heap has given everything back.
        CHECK(source.counts().reserved == Bytes{0});
        ++*static_cast<std::atomic<int>*>(flag);
      });
      ebb::Pool pool(source, std::move(options));
      heap = &pool.acquire();
      for (std::uint64_t i = 0; i < 40; ++i) {
        blocks.push_back(heap->allocate(Bytes{size_of(i + round)}));
        ebb::test::fill(blocks.back(), i);
        cells.push_back(heap->take_cell());
      }
      for (std::size_t i = 0; i < 10; ++i) {
        heap->deallocate(blocks.back());
        blocks.pop_back();
      }
      std::jthread foreign([&] {
        for (std::size_t i = 0; i < 10; ++i) {
          give_back(blocks[i]);
        }
      });
      if (round % 2 == 0) {
        foreign.join();
        blocks.erase(blocks.begin(), blocks.begin() + 10);
        ebb::Pool::park(*heap);
      } else {
        // The foreign frees race with parking.
        ebb::Pool::park(*heap);
        foreign.join();
        blocks.erase(blocks.begin(), blocks.begin() + 10);
      }
    }
    CHECK(gone == 0);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      CHECK(ebb::test::holds(blocks[i], blocks.size() == 20 ? i + 10 : i));
    }
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < blocks.size(); i += 3) {
          give_back(blocks[i]);
        }
        for (std::size_t i = t; i < cells.size(); i += 3) {
          heap->give_cell(cells[i]);
        }
      });
    }
    threads.clear();
    CHECK(gone == 1);
    CHECK(source.counts().reserved == Bytes{0});
  }
}

TEST_CASE("heap threads: the last frees race with the end of the pool") {
  for (std::uint64_t round = 0; round < ebb::test::stress(20000) / 100; ++round) {
    CountingSource source(ebb::system_source());
    {
      auto pool = std::make_unique<ebb::Pool>(source, ebb::PoolOptions{.records = &source});
      ebb::Heap& heap = pool->acquire();
      std::vector<Block> blocks;
      for (std::uint64_t i = 0; i < 20; ++i) {
        blocks.push_back(heap.allocate(Bytes{size_of(i)}));
      }
      std::jthread first([&] {
        for (std::size_t i = 0; i < 20; i += 2) {
          give_back(blocks[i]);
        }
      });
      std::jthread second([&] {
        for (std::size_t i = 1; i < 20; i += 2) {
          give_back(blocks[i]);
        }
      });
      if (round % 2 == 0) {
        ebb::Pool::park(heap);
        pool.reset();
      } else {
        pool.reset();
        ebb::Pool::park(heap);  // the pool is gone
      }
    }
    CHECK(source.counts().reserved == Bytes{0});
  }
}

TEST_CASE("heap threads: a heap whose pool closed stays usable until it is parked") {
  auto pool = std::make_unique<ebb::Pool>(ebb::system_source(), ebb::PoolOptions{.name = "gone"});
  ebb::Heap& heap = pool->acquire();
  const Block before = heap.allocate(Bytes{10000});
  pool.reset();
  CHECK(heap.is_mine());
  const Block after = heap.allocate(Bytes{10000});
  CHECK(std::string(heap.name()) == "gone");
  heap.deallocate(before);
  ebb::Pool::park(heap);
  ebb::test::fill(after, 1);
  CHECK(ebb::test::holds(after, 1));
  give_back(after);
}

TEST_CASE("heap threads: a seizure races with the owner that comes back") {
  ebb::Pool pool(ebb::system_source(), {});
  std::atomic<bool> done{false};
  std::vector<std::jthread> seizers;
  for (int i = 0; i < 2; ++i) {
    seizers.emplace_back([&] {
      while (!done.load()) {
        pool.trim();
      }
    });
  }
  std::vector<Block> kept;
  const std::uint64_t rounds = ebb::test::stress(20000) / 10;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    ebb::Heap& heap = pool.acquire();
    REQUIRE(heap.is_mine());
    kept.push_back(heap.allocate(Bytes{size_of(round)}));
    ebb::test::fill(kept.back(), round);
    ebb::Pool::park(heap);
    if (kept.size() == 20) {
      for (std::size_t i = 0; i < kept.size(); ++i) {
        CHECK(ebb::test::holds(kept[i], round + 1 - kept.size() + i));
        give_back(kept[i]);  // parked: every free is a foreign one
      }
      kept.clear();
    }
  }
  done = true;
  seizers.clear();
  for (const Block& block : kept) {
    give_back(block);
  }
  pool.trim();
  CHECK(pool.stats().live == Bytes{0});
  CHECK(pool.stats().reserved == Bytes{0});
}

TEST_CASE("heap threads: a thread gets the heap again that it had last") {
  ebb::Pool pool(ebb::system_source(), {});
  ebb::Heap& mine = pool.acquire();
  ebb::Heap* others = nullptr;
  std::jthread([&] {
    others = &pool.acquire();
    ebb::Pool::park(*others);
  }).join();
  ebb::Pool::park(mine);
  CHECK(others != &mine);
  for (int i = 0; i < 3; ++i) {
    ebb::Heap& again = pool.acquire();
    CHECK(&again == &mine);
    ebb::Pool::park(again);
  }
}

TEST_CASE("heap threads: a large block of a heap whose pool is gone gives its pages back at once") {
  CountingSource source(ebb::system_source());
  ebb::DataPtr large;
  ebb::DataPtr small;
  {
    ebb::Pool pool(source, {});
    ebb::Heap& heap = pool.acquire();
    large = ebb::own_block(heap.allocate(Bytes{4 << 20}));
    small = ebb::own_block(heap.allocate(Bytes{100}));
    ebb::Pool::park(heap);
  }
  const auto before = source.counts();
  CHECK(before.reserved != Bytes{0});
  large.reset();
  CHECK(source.counts().decommits == before.decommits + 1);
  CHECK(source.counts().reserved == before.reserved);
  small.reset();
  CHECK(source.counts().reserved == Bytes{0});
}

TEST_CASE("heap threads: a request that the limit refuses waits for what others free") {
  ebb::test::OwnHeap own({.limit = Bytes{2 << 20}, .limit_wait = std::chrono::seconds(60)});
  const Block first = own.take(1 << 20);
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    give_back(first);
  });
  const Block second = own.heap.try_allocate(Bytes{3 << 19});
  CHECK(second);
  own.heap.deallocate(second);
}

TEST_CASE("heap threads: a request waits for the idle pages of another thread's heap") {
  ebb::Pool pool(ebb::system_source(),
                 {.limit = Bytes{2 << 20}, .limit_wait = std::chrono::seconds(60)});
  std::atomic<bool> full{false};
  std::atomic<bool> done{false};
  std::jthread other([&] {
    ebb::Heap& heap = pool.acquire();
    heap.deallocate(heap.allocate(Bytes{3 << 19}));
    full = true;
    while (!done) {
      heap.drain();  // sees the request to trim
      std::this_thread::yield();
    }
    ebb::Pool::park(heap);
  });
  while (!full) {
    std::this_thread::yield();
  }
  ebb::Heap& heap = pool.acquire();
  const Block block = heap.try_allocate(Bytes{1 << 20});
  CHECK(block);
  heap.deallocate(block);
  ebb::Pool::park(heap);
  done = true;
}

TEST_CASE("heap threads: the wait for a limit ends, and what cannot ever fit does not wait") {
  using Clock = std::chrono::steady_clock;
  ebb::test::OwnHeap own({.limit = Bytes{1 << 20}, .limit_wait = std::chrono::milliseconds(50)});
  const Block block = own.take(1 << 19);
  auto start = Clock::now();
  CHECK_FALSE(own.heap.try_allocate(Bytes{3 << 18}));
  CHECK(Clock::now() - start >= std::chrono::milliseconds(50));
  CHECK(Clock::now() - start < std::chrono::seconds(20));
  own.heap.deallocate(block);
  ebb::test::OwnHeap patient({.limit = Bytes{1 << 20}, .limit_wait = std::chrono::hours(1)});
  start = Clock::now();
  CHECK_FALSE(patient.heap.try_allocate(Bytes{2 << 20}));
  CHECK(Clock::now() - start < std::chrono::seconds(20));
}
