// SPDX-License-Identifier: Apache-2.0
// Plans saved by one run are followed by the next. [alloc.replay]
#include "plan_text.h"
#include "replay_fixture.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using ebb::AllocationKind;
using ebb::AllocationSequence;
using ebb::Bytes;
using ebb::Place;
using ebb::PlanSet;
using ebb::test::all_kinds;
using ebb::test::Program;
using ebb::test::ReplayedHeap;
using ebb::test::text_of;

namespace {

bool same(const AllocationSequence& a, const AllocationSequence& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.repeats(y) && x.dies == y.dies && x.kind == y.kind;
  });
}

void check_same_plans(const PlanSet& a, const PlanSet& b) {
  const auto ours = a.sequences();
  const auto theirs = b.sequences();
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(same(ours[i], theirs[i]));
    CHECK(a.plans()[i].height == b.plans()[i].height);
    CHECK(a.plans()[i].buffers == b.plans()[i].buffers);
    CHECK(a.plans()[i].outliving == b.plans()[i].outliving);
    CHECK(a.plans()[i].max_live == b.plans()[i].max_live);
  }
}

// Where the blocks of an iteration are, from the first one.
std::vector<std::ptrdiff_t> offsets_in(ReplayedHeap& replayed, const Program& program,
                                       const Place& place) {
  std::vector<std::ptrdiff_t> found;
  const std::byte* first = nullptr;
  replayed.run(program, place, [&](std::size_t, const ebb::Block& block) {
    const auto* const data = static_cast<const std::byte*>(block.data);
    first = first == nullptr ? data : first;
    found.push_back(data - first);
  });
  return found;
}

}  // namespace

TEST_CASE("plan codec: a set without plans is saved and loaded") {
  const PlanSet empty;
  CHECK(empty.save() == text_of(""));
  PlanSet loaded;
  loaded.load(empty.save());
  CHECK(loaded.plans().empty());
}

TEST_CASE("plan codec: every kind of entry, and names with odd bytes, come back") {
  PlanSet set;
  set.load(text_of(all_kinds));
  CHECK(set.save() == text_of(all_kinds));
  REQUIRE(set.plans().size() == 1);
  CHECK(set.plans()[0].height == Bytes{640 + 4096});
  CHECK(set.plans()[0].outliving == 1);
  CHECK(set.stats().height == Bytes{640 + 4096});
  CHECK(set.stats().planned == 0);
  const AllocationSequence sequence = set.sequences()[0];
  REQUIRE(sequence.size() == 4);
  CHECK(sequence[2].kind == AllocationKind::outliving);
  CHECK(sequence[2].align_log2 == 3);
  CHECK(sequence[2].place.is_same_as({"a b\\\n\xc3\xa9", 4294967295u}));
  CHECK(sequence[3].kind == AllocationKind::iteration);
}

TEST_CASE("plan codec: what was planned is saved, and followed at once where it is loaded") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Program program = ebb::test::random_program(random, 200, 20);
    ReplayedHeap before;
    before.learn(program);
    const auto offsets = offsets_in(before, program, {"program", 1});
    ReplayedHeap after;
    after.plans.load(before.plans.save());
    check_same_plans(before.plans, after.plans);
    CHECK(after.plans.save() == before.plans.save());
    const std::string name = "program";  // as another library has it
    CHECK(offsets_in(after, program, {name.c_str(), 1}) == offsets);
    CHECK(after.plans.stats().followed == 1);
    CHECK(after.plans.stats().displaced == 0);
  }
}

TEST_CASE("plan codec: plans keep their order, and come before those of the set") {
  std::mt19937_64 random(1);
  ReplayedHeap both;
  both.learn(ebb::test::random_program(random, 20, 5));
  both.learn(ebb::test::random_program(random, 30, 5));
  REQUIRE(both.plans.plans().size() == 2);
  PlanSet loaded;
  loaded.load(text_of(all_kinds));
  loaded.load(both.plans.save());
  REQUIRE(loaded.plans().size() == 3);
  CHECK(loaded.plans()[0].buffers == both.plans.plans()[0].buffers);
  CHECK(loaded.plans()[1].buffers == both.plans.plans()[1].buffers);
  CHECK(loaded.plans()[2].outliving == 1);
}

TEST_CASE("plan codec: the first iteration follows whichever of the loaded plans it fits") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::array<Program, 3> programs;
    ReplayedHeap before;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      programs[i] = ebb::test::random_program(random, 40, 8);
      programs[i].front().bytes = 1000 + i;  // so that none begins as another one
      before.learn(programs[i]);
    }
    for (const Program& program : programs) {
      ReplayedHeap after;
      after.plans.load(before.plans.save());
      after.run(program);
      CHECK(after.plans.stats().followed == 1);
      CHECK(after.plans.stats().displaced == 0);
    }
  }
}

TEST_CASE("plan codec: blocks that outlive, and iterations within, are followed at once too") {
  struct Nested {
    ReplayedHeap outer;
    PlanSet inner_plans{{}, {"inner", 7}};
    ebb::Replay inner;

    ebb::Block take(ebb::Replay& replay, std::size_t bytes) {
      ebb::BlockRecord* const record = replay.take(outer.own.heap, Bytes{bytes},
                                                   ebb::default_align_cpu, ebb::Stream{}, {"n", 1});
      REQUIRE(record != nullptr);
      return record->block(record->data);
    }
    void run() {
      outer.replay.begin(outer.plans);
      const ebb::Block first = take(outer.replay, 5000);
      inner.begin(inner_plans);
      const ebb::Block within = take(inner, 3000);
      const ebb::Block more = take(inner, 100);
      outer.own.heap.deallocate(within);
      outer.own.heap.deallocate(more);
      inner.end();
      const ebb::Block straggler = take(outer.replay, 700);
      outer.own.heap.deallocate(first);
      outer.replay.end();
      outer.own.heap.deallocate(straggler);
      inner_plans.work();
      outer.plans.work();
    }
  };
  Nested before;
  for (int i = 0; i < 6; ++i) {
    before.run();
  }
  const AllocationSequence learned = before.outer.plans.sequences().at(0);
  const auto has = [&](AllocationKind kind) {
    return std::any_of(learned.begin(), learned.end(),
                       [&](const auto& entry) { return entry.kind == kind; });
  };
  REQUIRE(has(AllocationKind::iteration));
  REQUIRE(has(AllocationKind::outliving));

  Nested after;
  after.outer.plans.load(before.outer.plans.save());
  after.inner_plans.load(before.inner_plans.save());
  check_same_plans(before.outer.plans, after.outer.plans);
  after.run();
  CHECK(after.outer.plans.stats().followed == 1);
  CHECK(after.outer.plans.stats().displaced == 0);
  CHECK(after.inner_plans.stats().followed == 1);
  CHECK(after.inner_plans.stats().displaced == 0);
}

TEST_CASE("plan codec: names stay while what was learned from a loaded plan replaces it") {
  for (std::uint64_t first = ebb::test::test_seed(), seed = first; seed < first + 10; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Program program = ebb::test::random_program(random, 50, 10);
    ReplayedHeap before;
    before.learn(program);
    ReplayedHeap after;
    after.plans.load(before.plans.save());
    // The last block is kept, twice, so that it is learned to outlive its iteration.
    const Place place{"program", 1};
    Program keeping = program;
    keeping.pop_back();
    after.run(keeping, place);
    after.run(keeping, place);
    after.plans.work();
    REQUIRE(after.plans.plans().size() == 1);
    CHECK(after.plans.plans()[0].outliving == 1);
    CHECK(after.plans.sequences()[0][0].place.file != place.file);
    // What leaves the plan is recorded with what came as planned before.
    Program longer = program;
    longer.insert(longer.end(), {{77, 1000}, {0, 1000}});
    after.learn(longer);
    PlanSet again;
    again.load(after.plans.save());
    check_same_plans(after.plans, again);
  }
}
