// SPDX-License-Identifier: Apache-2.0
#include "trace_player.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <sys/resource.h>

namespace ebb::world {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t page_bytes = 4096;

std::uint64_t faults_so_far() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

std::uint64_t set_aside(std::uint64_t bytes) noexcept {
  const std::uint64_t align = default_align_cpu.value();
  return std::max((bytes + align - 1) / align * align, align);
}

template <class Memory>
class Player {
 public:
  Player(const Trace& trace, Memory& memory, PlanSet* plans, const PlayOptions& options)
      : trace_(trace),
        memory_(memory),
        plans_(plans),
        options_(options),
        blocks_(trace.bytes.size()),
        taken_by_(trace.bytes.size()) {}
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;
  Player(Player&&) = delete;
  Player& operator=(Player&&) = delete;
  ~Player() {
    memory_.end_iteration();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i] != typename Memory::Block{}) {
        memory_.give(blocks_[i], taken_by_[i]);
      }
    }
  }

  Played run() {
    Played played;
    played.iterations.resize(trace_.iterations());
    run_events(trace_.before(), played.before);
    for (std::size_t i = 0; i < trace_.iterations(); ++i) {
      run_iteration(i, played.iterations[i]);
    }
    run_events(trace_.after(), played.after);
    check_what_is_left();
    return played;
  }

 private:
  void run_iteration(std::size_t i, PlayedIteration& figures) {
    const PlanSetStats before = plans_ != nullptr ? plans_->stats() : PlanSetStats{};
    figures.planned = before.planned;
    const std::uint64_t faults = faults_so_far();
    const Clock::time_point start = Clock::now();
    memory_.begin_iteration();
    run_events(trace_.iteration(i), figures);
    memory_.end_iteration();
    figures.ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    figures.faults = faults_so_far() - faults;
    if (plans_ != nullptr) {
      const PlanSetStats stats = plans_->stats();
      figures.followed = stats.followed - before.followed;
      figures.displaced = stats.displaced - before.displaced;
      plans_->work();
    }
  }

  void run_events(std::span<const TraceEvent> events, PlayedIteration& figures) {
    figures.calls = events.size();
    figures.live_before = live_;
    if (options_.measure == Measure::time) {
      for (const TraceEvent& event : events) {
        event.is_free ? free(event) : allocate(event);
      }
      return;
    }
    figures.live_peak = live_;
    for (const TraceEvent& event : events) {
      const std::uint64_t bytes = set_aside(trace_.bytes[event.block]);
      if (event.is_free) {
        check(event.block);
        free(event);
        live_ -= bytes;
      } else {
        allocate(event);
        touch(event.block);
        live_ += bytes;
        figures.live_peak = std::max(figures.live_peak, live_);
        figures.reserved_peak = std::max(figures.reserved_peak, memory_.reserved());
      }
    }
    figures.reserved_peak = std::max(figures.reserved_peak, memory_.reserved());
  }

  void allocate(const TraceEvent& event) {
    const typename Memory::Block block = memory_.take(trace_.bytes[event.block], event.thread);
    if (block == typename Memory::Block{}) [[unlikely]] {
      throw std::runtime_error("no memory for a block of " +
                               std::to_string(trace_.bytes[event.block]) + " bytes");
    }
    blocks_[event.block] = block;
    taken_by_[event.block] = event.thread;
  }
  void free(const TraceEvent& event) {
    memory_.give(std::exchange(blocks_[event.block], typename Memory::Block{}),
                 taken_by_[event.block]);
  }

  // What block has in its page of that number.
  static std::byte mark(std::uint32_t block, std::uint64_t page) noexcept {
    return static_cast<std::byte>((block * 0x9e3779b97f4a7c15u + page * 0x94d049bb133111ebu) >> 56);
  }
  void touch(std::uint32_t block) noexcept {
    if (options_.touch) {
      std::byte* const data = Memory::data(blocks_[block]);
      for (std::uint64_t at = 0; at < trace_.bytes[block]; at += page_bytes) {
        data[at] = mark(block, at / page_bytes);
      }
    }
  }
  void check(std::uint32_t block) const {
    if (options_.touch) {
      const std::byte* const data = Memory::data(blocks_[block]);
      for (std::uint64_t at = 0; at < trace_.bytes[block]; at += page_bytes) {
        if (data[at] != mark(block, at / page_bytes)) {
          throw BrokenBlock("byte " + std::to_string(at) + " of a block of " +
                            std::to_string(trace_.bytes[block]) +
                            " bytes was overwritten, which is a defect of the memory");
        }
      }
    }
  }
  void check_what_is_left() const {
    for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
      if (blocks_[block] != typename Memory::Block{}) {
        check(block);
      }
    }
  }

  const Trace& trace_;
  Memory& memory_;
  PlanSet* const plans_;
  const PlayOptions options_;
  // By the trace's number, made at once: what is touched here first would count as its faults.
  std::vector<typename Memory::Block> blocks_;
  std::vector<std::uint32_t> taken_by_;
  std::uint64_t live_ = 0;
};

}  // namespace

Played play(const Trace& trace, HeapMemory& memory, PlanSet* plans, const PlayOptions& options) {
  return Player<HeapMemory>(trace, memory, plans, options).run();
}

Played play(const Trace& trace, SystemMemory& memory, const PlayOptions& options) {
  return Player<SystemMemory>(trace, memory, nullptr, options).run();
}

}  // namespace ebb::world
