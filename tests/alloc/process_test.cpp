// SPDX-License-Identifier: Apache-2.0
// Heaps and the process: little address space, exit while heaps are alive. [alloc.heap] [rt.exit]
#include "heap_fixture.h"
#include "support/child.h"
#include "support/process_status.h"
#include "support/sanitized.h"

#include <ebb/alloc/pool.h>

#include <memory>
#include <thread>
#include <vector>

#include <sys/resource.h>

using ebb::Block;
using ebb::Bytes;

namespace {

// What a host may leave behind in a static object.
struct LeftBehind {
  LeftBehind() : pool(ebb::system_source(), {.name = "left behind"}), heap(&pool.acquire()) {
    for (std::size_t i = 0; i < 100; ++i) {
      pointers.push_back(ebb::own_block(heap->allocate(Bytes{i * 100})));
    }
  }
  LeftBehind(const LeftBehind&) = delete;
  LeftBehind& operator=(const LeftBehind&) = delete;
  LeftBehind(LeftBehind&&) = delete;
  LeftBehind& operator=(LeftBehind&&) = delete;
  ~LeftBehind() {
    if (heap->is_mine()) {  // else its thread is still running, and its heap goes with the process
      ebb::Pool::park(*heap);
    }
  }

  ebb::Pool pool;
  ebb::Heap* heap;
  std::vector<ebb::DataPtr> pointers;
};

}  // namespace

TEST_CASE("process: where a large reservation is refused, heaps grow in chunks") {
  if (ebb::test::is_sanitized()) {
    MESSAGE("skipped: sanitizers need address space");
    return;
  }
  const std::size_t used = ebb::test::self_status_bytes("VmSize:");
  const int status = ebb::test::run_in_child([&] {
    const rlim_t most = used + (std::size_t{96} << 20);
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    ebb::test::OwnHeap own;  // its reservation alone is 4 GiB
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < 60; ++i) {
      const Block block = own.heap.try_allocate(Bytes{1 << 20});
      if (!block) {
        break;
      }
      ebb::test::fill(block, i);
      blocks.push_back(block);
    }
    bool sound = blocks.size() >= 32;
    sound = sound && !own.heap.try_allocate(Bytes{std::size_t{80} << 20});
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      sound = sound && ebb::test::holds(blocks[i], i);
      own.heap.deallocate(blocks[i]);
    }
    return sound ? 0 : 1;
  });
  CHECK(ebb::test::exited_with_0(status));
}

TEST_CASE("process: exit from main with heaps in static objects is clean") {
  const int status = ebb::test::run_in_child([] {
    static LeftBehind first;
    static const auto second = std::make_unique<LeftBehind>();
    return 0;
  });
  CHECK(ebb::test::exited_with_0(status));
}

TEST_CASE("process: exit from main with heaps that are never destroyed is clean") {
  const int status = ebb::test::run_in_child([] {
    static LeftBehind* const forever = new LeftBehind;
    return forever->pointers.size() == 100 ? 0 : 1;
  });
  CHECK(ebb::test::exited_with_0(status));
}

TEST_CASE("process: exit from a thread while heaps are alive is clean") {
  const int status = ebb::test::run_in_child([] {
    static LeftBehind left;
    std::thread([] {
      thread_local LeftBehind of_thread;
      of_thread.pointers.clear();
      std::exit(0);  // NOLINT(concurrency-mt-unsafe): that is the case
    }).join();
    return 1;
  });
  CHECK(ebb::test::exited_with_0(status));
}

TEST_CASE("process: pointers in static objects may outlive their pool") {
  const int status = ebb::test::run_in_child([] {
    static ebb::DataPtr kept;
    static ebb::DataPtr large;
    ebb::Pool pool(ebb::system_source(), {});
    ebb::Heap& heap = pool.acquire();
    kept = ebb::own_block(heap.allocate(Bytes{100}));
    large = ebb::own_block(heap.allocate(Bytes{10 << 20}));
    ebb::Pool::park(heap);
    return 0;
  });
  CHECK(ebb::test::exited_with_0(status));
}
