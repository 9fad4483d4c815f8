// SPDX-License-Identifier: Apache-2.0
// Every call to a source, and every heap call, of a program that is recorded, planned, followed and
// left fails once in turn: nothing overlaps, nothing is left behind, and what repeats after that is
// planned and followed. [alloc.replay]
#include "heap_fixture.h"
#include "support/counting_source.h"
#include "support/failing_new.h"
#include "support/failing_source.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/replay.h>

#include <array>
#include <cstdint>
#include <random>

using ebb::Block;
using ebb::Bytes;
using ebb::test::CountingSource;
using ebb::test::FailingNew;
using ebb::test::FailingSource;
using ebb::test::OwnHeap;

namespace {

// A program with an iteration within, that runs on whatever is refused. Makes no heap call of its
// own while it runs.
class Rig {
 public:
  explicit Rig(ebb::Source& under)
      : pages_(under),
        records_(under),
        own_(pages_, {.reservation = Bytes{1 << 21}, .records = &records_}) {
    pages_.never_fail();
    records_.never_fail();
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  Rig(Rig&&) = delete;
  Rig& operator=(Rig&&) = delete;
  ~Rig() {
    own_.heap.trim();
    CHECK(own_.heap.stats().live == Bytes{0});
    CHECK(own_.heap.stats().reserved == Bytes{0});
  }

  FailingSource& pages() { return pages_; }
  FailingSource& records() { return records_; }

  // Recorded, planned, followed, left in several ways, loosened, trimmed, planned anew.
  void run_all() {
    for (int i = 0; i < 3; ++i) {
      iterate(0);
      work();
    }
    for (int i = 0; i < 2; ++i) {
      for (const int change : {1, 2, 3, 4, 5, 0}) {
        iterate(change);
      }
      work();
      own_.heap.trim();
    }
    for (int i = 0; i < 3; ++i) {
      iterate(6);
      work();
    }
  }
  // Returns whether the program is planned and followed by now, within few iterations.
  bool recovers() {
    for (int i = 0; i < 24; ++i) {  // the range may move only now and then
      iterate(0);
      work();
    }
    const auto before = outer_.stats();
    const auto inner_before = inner_.stats();
    iterate(0);
    return outer_.stats().followed == before.followed + 1 &&
           outer_.stats().displaced == before.displaced &&
           inner_.stats().displaced == inner_before.displaced;
  }
  std::uint64_t refusals() const { return refusals_; }
  // Blocks that held something else when they were freed.
  std::uint64_t wrong() const { return wrong_; }

 private:
  static constexpr std::size_t blocks_most = 64;

  void take(ebb::Replay& replay, std::size_t number, std::size_t bytes, std::uint32_t line = 1) {
    ebb::BlockRecord* const record =
        replay.take(own_.heap, Bytes{bytes}, ebb::default_align_cpu, {}, {"faulty", line});
    blocks_[number] = record != nullptr ? record->block(record->data) : Block{};
    if (record != nullptr) {
      ebb::test::fill(blocks_[number], number);
    } else {
      ++refusals_;
    }
  }
  void free(std::size_t number) {
    if (blocks_[number]) {
      wrong_ += ebb::test::holds(blocks_[number], number) ? 0U : 1U;
      own_.heap.deallocate(blocks_[number]);
      blocks_[number] = {};
    }
  }
  void run_inner(int change, std::size_t first) {
    inner_replay_.begin(inner_);
    take(inner_replay_, first, 12'000 + (change == 3 ? 40'000 : 0));
    take(inner_replay_, first + 1, 500);
    if (change == 4) {
      take(inner_replay_, first + 3, 2 << 20, 7);
    }
    free(first);
    take(inner_replay_, first + 2, 9000);
    free(first + 1);
    free(first + 2);
    inner_replay_.end();
    free(first + 3);
  }
  // change: 0 none, 1 one more, 2 left out and kept, 3 the inner one needs more, 4 a large block in
  // the inner one, 5 a large block, 6 another program.
  void iterate(int change) {
    outer_replay_.begin(outer_);
    const std::size_t more = change == 6 ? 3000 : 0;
    for (std::size_t i = 0; i < 12; ++i) {
      if (change == 2 && i == 4) {
        continue;
      }
      take(outer_replay_, i, 700 * (i % 5 + 1) * (i % 3 + 1) + more);
      if (change == 1 && i == 6) {
        take(outer_replay_, 20, 30'000, 5);
      }
      if (change == 5 && i == 6) {
        take(outer_replay_, 20, 2 << 20, 5);
      }
      if (i % 4 == 3) {
        run_inner(change, 30 + i);
      }
      if (i > 2) {
        free(i - 2);
      }
    }
    if (change != 2) {
      free_all();
    }
    outer_replay_.end();
    free_all();
  }
  void free_all() {
    for (std::size_t i = 0; i < blocks_most; ++i) {
      free(i);
    }
  }
  void work() {
    outer_.work();
    inner_.work();
  }

  FailingSource pages_;
  FailingSource records_;
  OwnHeap own_;
  ebb::PlanSet outer_;
  ebb::PlanSet inner_;
  ebb::Replay outer_replay_;
  ebb::Replay inner_replay_;
  std::array<Block, blocks_most> blocks_;
  std::uint64_t refusals_ = 0;
  std::uint64_t wrong_ = 0;
};

void check_after(Rig& rig) {
  CHECK(rig.wrong() == 0);
  CHECK(rig.recovers());
  CHECK(rig.wrong() == 0);
}

void fail_each_source_call(FailingSource& (Rig::*failing)(), std::uint64_t times) {
  std::uint64_t refusals = 0;
  for (std::uint64_t call = 1;; ++call) {
    CAPTURE(call);
    CountingSource counted(ebb::system_source());
    bool all = false;
    {
      Rig rig(counted);
      (rig.*failing)().fail_at(call, times);
      rig.run_all();
      all = (rig.*failing)().calls() < call;
      (rig.*failing)().never_fail();
      refusals += rig.refusals();
      check_after(rig);
    }
    CHECK(counted.counts().reserved == Bytes{0});
    if (all) {
      CHECK(call > 3);
      break;
    }
  }
  CHECK(refusals > 0);  // else this proves nothing
}

}  // namespace

TEST_CASE("replay fault: without faults the program is followed, and makes heap calls") {
  Rig rig(ebb::system_source());
  const FailingNew never(0, 0);
  rig.run_all();
  CHECK(never.calls() > 100);
  CHECK(rig.refusals() == 0);
  check_after(rig);
}

TEST_CASE("replay fault: each refusal of pages leaves nothing behind") {
  fail_each_source_call(&Rig::pages, 1);
  fail_each_source_call(&Rig::pages, 20);
}

TEST_CASE("replay fault: each refusal of record memory leaves nothing behind") {
  fail_each_source_call(&Rig::records, 1);
  fail_each_source_call(&Rig::records, 3);
}

TEST_CASE("replay fault: each heap call that fails leaves nothing behind") {
  const std::uint64_t seed = ebb::test::test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  // Most calls are the shadow map's where there is one: not each of them then.
  const std::uint64_t stride = EBB_CHECKS >= 2 ? 5 : 1;
  for (const std::uint64_t times : {1U, 50U}) {
    for (std::uint64_t call = 1;; call += 1 + random() % stride) {
      CAPTURE(call);
      CAPTURE(times);
      Rig rig(ebb::system_source());
      bool all = false;
      {
        const FailingNew failing(call, times);
        rig.run_all();
        all = failing.calls() < call;
      }
      CHECK(rig.refusals() == 0);
      check_after(rig);
      if (all) {
        break;
      }
    }
  }
}
