// SPDX-License-Identifier: Apache-2.0
// Programs that allocate and free in iterations, with deviations, and follow plans while they do.
// Every block is filled, and checked when it goes. Not shared between threads.
#pragma once

#include "heap_fixture.h"

#include <ebb/alloc/replay.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace ebb::test {

// One step of an iteration: an allocation, or the free of an earlier one of the same iteration.
struct ProgramStep {
  std::size_t bytes = 0;   // 0: a free
  std::size_t number = 0;  // of the allocation, from 0
  std::uint32_t line = 0;  // of its place, counted from the iteration's
};

// An iteration as it should go.
using Program = std::vector<ProgramStep>;

// Returns how large one more block is, in programs whose largest is that.
inline std::size_t random_bytes(std::mt19937_64& random, std::size_t largest) {
  const std::size_t doublings = 1 + random() % 12;
  return 1 + random() % (largest >> doublings);
}

// Returns a program of count allocations, of which about alive live at any time, all of them freed
// by its end.
inline Program random_program(std::mt19937_64& random, std::size_t count, std::size_t alive,
                              std::size_t largest = std::size_t{1} << 18) {
  Program program;
  std::vector<std::size_t> living;
  const auto drop_one = [&] {
    const std::size_t at = random() % living.size();
    program.push_back({0, living[at]});
    living.erase(living.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (std::size_t number = 0; number < count; ++number) {
    program.push_back({random_bytes(random, largest), number});
    living.push_back(number);
    while (living.size() > alive || (living.size() > 1 && random() % 3 == 0)) {
      drop_one();
    }
  }
  while (!living.empty()) {
    drop_one();
  }
  return program;
}

// Makes programs that deviate from one.
class Deviation {
 public:
  Deviation(std::mt19937_64& random, std::size_t largest) : random_(random), largest_(largest) {}

  // Returns the program with a share of its allocations changed, each in one of four ways: left
  // out, preceded by one more, of half to twice the size, or freed late.
  Program of(const Program& program, double share) {
    std::uniform_real_distribution<double> chance(0, 1);
    std::size_t extra = program.size();  // numbers of what is put in
    ways_.assign(program.size(), as_before);
    for (const ProgramStep& step : program) {
      pass_time();
      if (step.bytes == 0) {
        free(step);
        continue;
      }
      const Way way = chance(random_) < share ? static_cast<Way>(random_() % 4) : as_before;
      ways_[step.number] = way;
      if (way == preceded) {
        changed_.push_back({random_bytes(random_, largest_), extra});
        free_later(extra++);
      }
      if (way != left_out) {
        changed_.push_back(step);
      }
      if (way == resized) {
        std::size_t& bytes = changed_.back().bytes;
        bytes = std::max<std::size_t>(1, bytes / 2 + random_() % (bytes * 3 / 2 + 1));
      }
    }
    for (const auto& entry : late_) {
      changed_.push_back({0, entry.second});
    }
    late_.clear();
    return std::exchange(changed_, {});
  }

 private:
  enum Way : std::uint8_t { left_out, preceded, resized, freed_late, as_before };

  void free(const ProgramStep& step) {
    if (ways_[step.number] == freed_late) {
      free_later(step.number);
    } else if (ways_[step.number] != left_out) {
      changed_.push_back(step);
    }
  }
  void free_later(std::size_t number) { late_.emplace_back(1 + random_() % 40, number); }
  void pass_time() {
    for (auto& entry : late_) {
      if (entry.first-- == 1) {
        changed_.push_back({0, entry.second});
      }
    }
    std::erase_if(late_, [](const auto& entry) { return entry.first == 0; });
  }

  std::mt19937_64& random_;
  std::size_t largest_;
  Program changed_;
  std::vector<Way> ways_;                                  // by number
  std::vector<std::pair<std::size_t, std::size_t>> late_;  // steps to go, number
};

// Where an iteration's blocks went, by number.
using Addresses = std::map<std::size_t, void*>;

// Returns how many of the blocks that both iterations had lay elsewhere.
inline std::size_t count_moved(const Addresses& planned, const Addresses& now) {
  std::size_t moved = 0;
  for (const auto& [number, data] : now) {
    const auto found = planned.find(number);
    moved += found != planned.end() && found->second != data ? 1 : 0;
  }
  return moved;
}

// Runs iterations of programs on one heap, with plans.
class ReplayedHeap {
 public:
  explicit ReplayedHeap(PoolOptions options = {}, PlanSetOptions plan_options = {})
      : own(std::move(options)), plans(plan_options) {}

  // Runs one iteration; what it leaves alive is freed after its end.
  void run(const Program& program, const Place& place = {"program", 1}) {
    run(program, place, [](std::size_t, const Block&) {});
  }
  // visit is called with each block's number.
  template <class Visit>
  void run(const Program& program, const Place& place, Visit visit) {
    std::map<std::size_t, Block> blocks;
    replay.begin(plans);
    for (const ProgramStep& step : program) {
      if (step.bytes == 0) {
        free(blocks, step.number);
        continue;
      }
      const Block block = take(step.bytes, {place.file, place.line + step.line});
      REQUIRE(block);
      fill(block, step.number);
      visit(step.number, block);
      blocks[step.number] = block;
    }
    replay.end();
    while (!blocks.empty()) {
      free(blocks, blocks.begin()->first);
    }
  }
  // Runs one, and returns where its blocks went.
  Addresses addresses(const Program& program) {
    Addresses found;
    run(program, {"program", 1},
        [&](std::size_t number, const Block& block) { found[number] = block.data; });
    return found;
  }
  // Takes a block of the iteration that is open, or a false one.
  Block take(std::size_t bytes, const Place& place = {"program", 1},
             Align align = default_align_cpu) {
    BlockRecord* const record = replay.take(own.heap, Bytes{bytes}, align, Stream{}, place);
    return record != nullptr ? record->block(record->data) : Block{};
  }
  // Blocks displaced since the last call.
  std::uint64_t newly_displaced() {
    return plans.stats().displaced - std::exchange(displaced_before_, plans.stats().displaced);
  }
  // Runs the program until it is planned.
  void learn(const Program& program) {
    const std::uint64_t before = plans.stats().planned;
    for (int i = 0; i < 4 && plans.stats().planned == before; ++i) {
      run(program);
      plans.work();
    }
    REQUIRE(plans.stats().planned > before);
  }

  OwnHeap own;
  PlanSet plans;
  Replay replay;

 private:
  void free(std::map<std::size_t, Block>& blocks, std::size_t number) {
    const auto found = blocks.find(number);
    REQUIRE(found != blocks.end());
    CHECK(holds(found->second, number));
    own.heap.deallocate(found->second);
    blocks.erase(found);
  }

  std::uint64_t displaced_before_ = 0;
};

}  // namespace ebb::test
