// SPDX-License-Identifier: Apache-2.0
// Nested iterations that repeat, deviate in every way, and hand blocks to another thread. Every
// block is filled, and checked by whoever frees it. One runner belongs to one thread.
#pragma once

#include "heap_fixture.h"

#include <ebb/alloc/replay.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace ebb::test {

struct FilledBlock {
  Block block;
  std::uint64_t number = 0;
};

// Frees blocks of others at random moments, on a thread of its own.
class ForeignFrees {
 public:
  explicit ForeignFrees(std::uint64_t seed) : thread_([this, seed] { run(seed); }) {}
  ForeignFrees(const ForeignFrees&) = delete;
  ForeignFrees& operator=(const ForeignFrees&) = delete;
  ForeignFrees(ForeignFrees&&) = delete;
  ForeignFrees& operator=(ForeignFrees&&) = delete;
  ~ForeignFrees() { stop(); }

  void put(const FilledBlock& filled) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(filled);
  }
  // Frees what is left, and ends the thread. Returns how many blocks held something else.
  std::uint64_t stop() {
    done_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    return wrong_;
  }

 private:
  void run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (bool last = false; !last;) {
      last = done_;
      FilledBlock filled;
      while (take(random(), filled)) {
        wrong_ += holds(filled.block, filled.number) ? 0U : 1U;
        filled.block.record->top->deallocate(filled.block);
        if (!last && random() % 4 == 0) {
          std::this_thread::yield();
        }
      }
      std::this_thread::yield();
    }
  }
  bool take(std::uint64_t which, FilledBlock& filled) {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty()) {
      return false;
    }
    std::swap(blocks_[which % blocks_.size()], blocks_.back());
    filled = blocks_.back();
    blocks_.pop_back();
    return true;
  }

  std::mutex mutex_;
  std::vector<FilledBlock> blocks_;
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> wrong_{0};
  std::jthread thread_;  // last: runs with the others made
};

// How one iteration goes: allocations and iterations within it.
struct NestedProgram {
  struct Step {
    std::size_t bytes = 0;
    std::size_t align = 64;
    std::size_t lives = 1;  // steps
    bool foreign = false;   // freed by another thread
    std::uint32_t line = 0;
    std::size_t inner = 0;  // one more than the number of the iteration within; 0: an allocation
  };
  std::size_t site = 0;
  std::vector<Step> steps;
  std::vector<NestedProgram> inner;
};

struct NestedOptions {
  std::size_t levels = 3;
  bool foreign = false;
  std::size_t steps = 60;
  std::size_t largest = std::size_t{1} << 17;
};

inline constexpr std::size_t nested_sites = 4;

inline NestedProgram random_nested(std::mt19937_64& random, const NestedOptions& options,
                                   std::size_t site = 0) {
  NestedProgram program{.site = site, .steps = {}, .inner = {}};
  const bool nests = options.levels > 1;
  if (nests) {
    NestedOptions below = options;
    --below.levels;
    below.steps = 1 + options.steps / 3;
    for (int i = 0; i < 2; ++i) {
      // Sometimes the same site again: recursion.
      program.inner.push_back(
          random_nested(random, below, random() % 8 == 0 ? site : (site + 1) % nested_sites));
    }
  }
  for (std::size_t i = 0; i < options.steps; ++i) {
    NestedProgram::Step step;
    step.bytes = random() % (options.largest >> random() % 12);
    step.align = random() % 20 == 0 ? std::size_t{1} << random() % 14 : 64;
    step.lives = 1 + random() % (random() % 4 == 0 ? 40 : 6);
    step.foreign = options.foreign && random() % 4 == 0;
    step.line = static_cast<std::uint32_t>(random() % 5);
    step.inner = nests && random() % 12 == 0 ? 1 + random() % program.inner.size() : 0;
    program.steps.push_back(step);
  }
  return program;
}

// Runs nested programs on one heap.
class NestedRunner {
 public:
  using Sets = std::array<PlanSet, nested_sites>;

  NestedRunner(Heap& heap, Sets& sets, std::uint64_t seed, ForeignFrees* others)
      : heap_(heap), sets_(sets), random_(seed), others_(others) {
    for (auto& replay : replays_) {
      replay = std::make_unique<Replay>();
    }
  }

  // Runs one iteration of which a share of the steps deviates. out_of_order: the ends, too.
  void run(const NestedProgram& program, double share, bool out_of_order = false) {
    share_ = share;
    out_of_order_ = out_of_order;
    run_level(program, 0);
    for (auto& replay : replays_) {
      replay->end();
    }
  }
  // Frees what was kept over iterations.
  void free_kept() {
    for (const FilledBlock& filled : kept_) {
      free(filled);
    }
    kept_.clear();
  }

 private:
  struct Living {
    FilledBlock filled;
    std::size_t until = 0;
    bool foreign = false;
  };

  bool chance(double share) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }

  void free(const FilledBlock& filled) {
    CHECK(holds(filled.block, filled.number));
    heap_.deallocate(filled.block);
  }
  void give(const Living& one) {
    if (one.foreign && others_ != nullptr) {
      others_->put(one.filled);
    } else {
      free(one.filled);
    }
  }
  void take(const NestedProgram::Step& step, std::size_t now, std::size_t level,
            std::vector<Living>& living) {
    BlockRecord* const record = replays_[level]->take(heap_, Bytes{step.bytes}, Align{step.align},
                                                      Stream{}, {"nested", step.line});
    REQUIRE(record != nullptr);
    const FilledBlock filled{record->block(record->data), ++number_};
    fill(filled.block, filled.number);
    if (chance(share_ / 20)) {
      kept_.push_back(filled);
    } else {
      living.push_back({filled, now + step.lives, step.foreign});
    }
  }
  // Returns whether the iteration ends here.
  bool deviate(NestedProgram::Step& step, std::size_t now, std::size_t level,
               std::vector<Living>& living) {
    NestedProgram::Step other = step;
    switch (random_() % 12) {
      case 0:
      case 1:  // put in
        other.inner = 0;
        other.bytes = random_() % 100'000;
        other.line = random_() % 2 == 0 ? step.line : 99;
        take(other, now, level, living);
        break;
      case 2:
      case 3:
      case 4:  // of another size
        step.bytes = step.bytes / 2 + random_() % (step.bytes * 3 / 2 + 1);
        break;
      case 5:
      case 6:  // freed late, or by another thread
        step.lives += random_() % 40;
        step.foreign = random_() % 2 == 0;
        break;
      case 7:
        heap_.trim();
        break;
      case 8:
        replays_[level]->join();
        break;
      case 9:
        if (!kept_.empty()) {
          std::swap(kept_[random_() % kept_.size()], kept_.back());
          free(kept_.back());
          kept_.pop_back();
        }
        break;
      case 10:
        if (out_of_order_) {
          replays_[random_() % (level + 1)]->end();
        }
        break;
      default:
        return random_() % 4 == 0;
    }
    return false;
  }
  void run_level(const NestedProgram& program, std::size_t level) {
    replays_[level]->begin(sets_[program.site]);
    std::vector<Living> living;
    std::size_t now = 0;
    for (NestedProgram::Step step : program.steps) {
      ++now;
      const bool deviates = chance(share_);
      if (deviates && random_() % 4 == 0) {
        continue;  // left out
      }
      if (deviates && deviate(step, now, level, living)) {
        break;
      }
      if (step.inner != 0) {
        run_level(program.inner[step.inner - 1], level + 1);
      } else {
        take(step, now, level, living);
      }
      std::erase_if(living, [&](const Living& one) {
        if (one.until <= now) {
          give(one);
        }
        return one.until <= now;
      });
    }
    const bool after = chance(share_);
    if (after) {
      replays_[level]->end();
    }
    for (const Living& one : living) {
      give(one);
    }
    replays_[level]->end();
  }

  Heap& heap_;
  Sets& sets_;
  std::mt19937_64 random_;
  ForeignFrees* others_;
  std::array<std::unique_ptr<Replay>, 4> replays_;
  std::vector<FilledBlock> kept_;
  std::uint64_t number_ = 0;
  double share_ = 0;
  bool out_of_order_ = false;
};

inline std::uint64_t displaced_in(const NestedRunner::Sets& sets) {
  std::uint64_t sum = 0;
  for (const PlanSet& set : sets) {
    sum += set.stats().displaced;
  }
  return sum;
}
inline void plan_all(NestedRunner::Sets& sets) {
  for (PlanSet& set : sets) {
    set.work();
  }
}

}  // namespace ebb::test
