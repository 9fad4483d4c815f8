// SPDX-License-Identifier: Apache-2.0
// Iterations on a device that repeat: planned addresses, without a call of the driver, and never
// before the stream that had them is done. [alloc.replay] [alloc.cuda] [alloc.graph]
#include "../replay_fixture.h"
#include "content.h"
#include "device_fixture.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::Stream;
using ebb::test::DeviceRig;
using ebb::test::mib;
using ebb::test::Program;
using ebb::test::ProgramStep;
using ebb::test::soon;

namespace {

using Addresses = std::vector<void*>;

Program small_program() {
  return {{1000, 0}, {70'000, 1}, {5000, 2}, {0, 0}, {1000, 3},
          {0, 1},    {66'000, 4}, {0, 3},    {0, 2}, {0, 4}};
}

struct Replayed : DeviceRig {
  explicit Replayed(ebb::SimOptions options = {.memory = mib(64)}) : DeviceRig(options) {}

  Block take_next(std::size_t bytes, Stream on, std::uint32_t line = 0) {
    ebb::BlockRecord* const record =
        replay.take(heap, Bytes{bytes}, ebb::default_align_cuda, on, {"program", 1 + line});
    return record == nullptr ? Block{} : record->block(record->data);
  }
  // Runs one iteration on a stream, and returns where its blocks were. What it leaves alive is
  // freed after its end. between is called after each step.
  template <class Between>
  Addresses run(const Program& program, Stream on, Between between) {
    Addresses found;
    std::map<std::size_t, Block> blocks;
    replay.begin(plans);
    for (const ProgramStep& step : program) {
      if (step.bytes == 0) {
        free(blocks, step.number);
      } else {
        const Block block = take_next(step.bytes, on, step.line);
        REQUIRE(block);
        content.write(block, static_cast<unsigned char>(step.number));
        blocks[step.number] = block;
        found.push_back(block.data);
      }
      between(blocks);
    }
    replay.end();
    while (!blocks.empty()) {
      free(blocks, blocks.begin()->first);
    }
    context->record(on);
    return found;
  }
  Addresses run(const Program& program, Stream on) {
    return run(program, on, [](const auto&) {});
  }
  void learn(const Program& program, Stream on) {
    for (int i = 0; i < 3; ++i) {
      run(program, on);
    }
    plans.work();
    run(program, on);
    REQUIRE(plans.stats().planned > 0);
  }
  void free(std::map<std::size_t, Block>& blocks, std::size_t number) {
    const auto found = blocks.find(number);
    REQUIRE(found != blocks.end());
    content.look_at(found->second, static_cast<unsigned char>(number), found->second.stream);
    heap.deallocate(found->second);
    blocks.erase(found);
  }

  ebb::test::Content content{*context};
  ebb::PlanSet plans{{.granule = ebb::default_align_cuda}};
  ebb::Replay replay;
  Stream a = context->make_stream();
  Stream b = context->make_stream();
};

}  // namespace

TEST_CASE_FIXTURE(Replayed, "device replay: what repeats has the same addresses, and asks nobody") {
  learn(small_program(), a);
  work(a);  // the host runs ahead
  const std::uint64_t calls = heap.stats().source_calls;
  const Addresses first = run(small_program(), a);
  const auto records = [this] { return machine.counts().of(ebb::SimCall::record); };
  const std::uint64_t before = records();
  for (int i = 0; i < 20; ++i) {
    CHECK(run(small_program(), a) == first);
  }
  CHECK(records() - before == 20);  // this test's own, one an iteration
  CHECK(machine.counts().of(ebb::SimCall::wait) == 0);
  CHECK(heap.stats().source_calls == calls);
  CHECK(plans.stats().displaced == 0);
  CHECK(plans.plans()[0].height == plans.plans()[0].max_live);
  machine.resume(a);
  CHECK(content.is_right());
}

namespace {

// Iterations whose two blocks have a range together that no hole has, because of a small block that
// lives between where they were before there was a plan.
struct Moved : Replayed {
  explicit Moved(ebb::Bytes memory = mib(64))
      : Replayed({.memory = memory, .page = ebb::test::kib(64)}) {
    const Block before = take(mib(4), a);
    state = take(Bytes{1000}, a);
    heap.deallocate(before);
    for (int i = 0; i < 3; ++i) {
      run(program, a);
    }
    plans.work();
  }
  ~Moved() { heap.deallocate(state); }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  Moved(Moved&&) = delete;
  Moved& operator=(Moved&&) = delete;

  const Program program{{4 << 20, 0}, {4 << 20, 1}, {0, 0}, {0, 1}};
  Block state;
};

struct MovedInLittle : Moved {
  MovedInLittle() : Moved(mib(10)) {}
};

// Small blocks keep each of the pages whose rest the iterations have.
struct StrewnPages : Replayed {
  StrewnPages() : Replayed({.memory = mib(8), .page = mib(2)}) {
    std::vector<Block> between;
    for (int i = 0; i < 3; ++i) {
      between.push_back(take(Bytes{1'900'000}, a));
      strewn.push_back(take(Bytes{20'000}, a));
    }
    for (const Block& block : between) {
      heap.deallocate(block);
    }
  }
  ~StrewnPages() {
    for (const Block& block : strewn) {
      heap.deallocate(block);
    }
  }
  StrewnPages(const StrewnPages&) = delete;
  StrewnPages& operator=(const StrewnPages&) = delete;
  StrewnPages(StrewnPages&&) = delete;
  StrewnPages& operator=(StrewnPages&&) = delete;

  std::vector<Block> strewn;
};

}  // namespace

TEST_CASE_FIXTURE(Moved,
                  "device replay: a device that is busy when the plan gets its range costs no "
                  "second footprint") {
  const auto is_slow = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  context->call(is_slow, nullptr, a);
  run(program, a);
  CHECK(plans.stats().followed == 1);
  CHECK(heap.stats().reserved <= mib(8) + ebb::test::kib(128));
  CHECK(content.is_right());
}

TEST_CASE_FIXTURE(Moved,
                  "device replay: a plan gets its range though the device does not come on") {
  work(a);
  const auto start = std::chrono::steady_clock::now();
  run(program, a);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  CHECK(plans.stats().followed == 1);
  machine.resume(a);
  run(program, a);
  CHECK(plans.stats().followed == 2);
  CHECK(content.is_right());
}

TEST_CASE_FIXTURE(MovedInLittle,
                  "device replay: a plan gets its range where there is no room for a "
                  "second footprint") {
  run(program, a);
  CHECK(plans.stats().followed == 1);
  CHECK(content.is_right());
}

TEST_CASE_FIXTURE(StrewnPages,
                  "device replay: without room for a range a loop goes on, and does "
                  "not ask the driver each time") {
  const Program program{{1'800'000, 0}, {1'800'000, 1}, {1'800'000, 2}, {0, 0}, {0, 1}, {0, 2}};
  learn(program, a);
  const std::uint64_t calls = heap.stats().source_calls;
  for (int i = 0; i < 20; ++i) {
    run(program, a);
  }
  CHECK(plans.stats().followed == 0);
  CHECK(heap.stats().source_calls - calls <= 6);
  CHECK(content.is_right());
}

TEST_CASE_FIXTURE(Replayed, "device replay: another stream's blocks are outside, and stay right") {
  learn(small_program(), a);
  work(a);
  const Addresses first = run(small_program(), a);
  std::vector<Block> others;
  const auto make_other = [&](const auto&) {
    others.push_back(take_next(3000, b, 100));
    content.write(others.back(), 77);
    content.look_at(others.back(), 77, b);
    if (others.size() % 2 == 0) {
      heap.deallocate(others.back());
      others.pop_back();
    }
  };
  for (int i = 0; i < 5; ++i) {
    CHECK(run(small_program(), a, make_other) == first);
  }
  CHECK(plans.stats().displaced == 0);
  for (const Block& block : others) {
    heap.deallocate(block);
  }
  machine.resume(a);
  CHECK(content.is_right());
}

TEST_CASE_FIXTURE(Replayed, "device replay: an iteration on another stream comes after the last") {
  learn(small_program(), a);
  work(a);
  const Addresses first = run(small_program(), a);
  CHECK(run(small_program(), b) == first);
  CHECK(machine.counts().of(ebb::SimCall::wait) == 1);
  CHECK(run(small_program(), b) == first);
  CHECK(machine.counts().of(ebb::SimCall::wait) == 1);
  machine.resume(a);
  CHECK(content.is_right());
}

TEST_CASE_FIXTURE(Replayed, "device replay: what another stream uses too keeps its place") {
  learn(small_program(), a);
  work(b);
  const auto use = [this](const std::map<std::size_t, Block>& blocks) {
    for (const auto& [number, block] : blocks) {
      context->wait(b, a);
      heap.note_use(*block.record, b);
      content.look_at(block, static_cast<unsigned char>(number), b);
    }
  };
  const Addresses first = run(small_program(), a, use);
  for (int i = 0; i < 3; ++i) {
    CHECK(run(small_program(), a, use) == first);
  }
  CHECK(plans.stats().displaced == 0);
  machine.resume(b);
  CHECK(content.is_right());
  heap.drain();
  CHECK(heap.stats().blocks_live == 0);
}

TEST_CASE_FIXTURE(Replayed, "device replay: iterations that deviate stay right") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  machine.set_delay_all(std::chrono::microseconds(2));
  const Program program = ebb::test::random_program(random, 60, 12);
  learn(program, a);
  for (int i = 0; i < 60; ++i) {
    Program changed = program;
    for (int change = 0; change < 3; ++change) {
      ProgramStep& step = changed[random() % changed.size()];
      step.bytes = step.bytes == 0 ? 0 : 1 + step.bytes * (50 + random() % 150) / 100;
    }
    const Stream on = random() % 4 == 0 ? b : a;
    run(random() % 3 == 0 ? program : changed, on, [&](const std::map<std::size_t, Block>& blocks) {
      if (!blocks.empty() && random() % 8 == 0) {
        const auto& [number, block] = *blocks.begin();
        const Stream user = on == a ? b : a;
        context->wait(user, on);
        heap.note_use(*block.record, user);
        content.look_at(block, static_cast<unsigned char>(number), user);
      }
      if (random() % 16 == 0) {
        heap.trim();
      }
    });
    plans.work();
  }
  CHECK(content.is_right());
  heap.drain();
  CHECK(heap.stats().blocks_live == 0);
}

TEST_CASE_FIXTURE(Replayed, "device replay: a hold keeps the plan's range from everybody else") {
  learn(small_program(), a);
  REQUIRE(heap.begin_hold());
  const Addresses held = run(small_program(), a);
  ebb::HeldBlocks blocks = heap.end_hold(a);
  const Addresses others = run(small_program(), a);
  for (void* const data : others) {
    CHECK(std::count(held.begin(), held.end(), data) == 0);
  }
  CHECK(heap.stats().live >= plans.plans()[0].height);
  blocks.release();
  CHECK(heap.stats().live == Bytes{});
  CHECK(content.is_right());
}
