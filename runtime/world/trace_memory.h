// SPDX-License-Identifier: Apache-2.0
// Where `ebb replay` gets the blocks of a trace from: heaps of ebb, with or without plans, or the
// system. Single-threaded: each thread of the trace has a heap of its own, but runs on this one.
#pragma once

#include "trace.h"

#include <ebb/alloc/pool.h>
#include <ebb/alloc/replay.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ebb::world {

// A heap for each thread of a trace. With a plan set, the iterations of the thread that iterates
// are replayed.
class HeapMemory {
 public:
  using Block = BlockRecord*;

  // plans may be null, else must outlive this.
  HeapMemory(const Trace& trace, PlanSet* plans);
  HeapMemory(const HeapMemory&) = delete;
  HeapMemory& operator=(const HeapMemory&) = delete;
  HeapMemory(HeapMemory&&) = delete;
  HeapMemory& operator=(HeapMemory&&) = delete;
  ~HeapMemory();

  void begin_iteration() noexcept {
    if (plans_ != nullptr) {
      replayed_ = loop_heap_;
      replay_.begin(*plans_);
    }
  }
  void end_iteration() noexcept {
    if (plans_ != nullptr) {
      replay_.end();
      replayed_ = nullptr;
    }
  }

  // Null is a refusal.
  Block take(std::uint64_t bytes, std::uint32_t thread) noexcept {
    Heap& heap = *heaps_[thread];
    return &heap == replayed_
               ? replay_.take(heap, Bytes{bytes}, default_align_cpu, Stream{}, Place{})
               : heap.take_block(Bytes{bytes}, default_align_cpu, Stream{});
  }
  // thread is the one that took it.
  void give(Block block, std::uint32_t thread) noexcept { heaps_[thread]->give_block(*block); }
  static std::byte* data(Block block) noexcept { return static_cast<std::byte*>(block->data); }

  // Bytes of pages committed, over all threads.
  std::uint64_t reserved() const noexcept;

 private:
  PlanSet* plans_;
  Pool pool_;
  std::vector<Heap*> heaps_;  // by thread
  Heap* loop_heap_ = nullptr;
  Heap* replayed_ = nullptr;  // loop_heap_ within an iteration
  Replay replay_;
};

// The process's own allocator. Only one at a time tells the truth.
class SystemMemory {
 public:
  using Block = void*;

  SystemMemory();
  SystemMemory(const SystemMemory&) = delete;
  SystemMemory& operator=(const SystemMemory&) = delete;
  SystemMemory(SystemMemory&&) = delete;
  SystemMemory& operator=(SystemMemory&&) = delete;
  ~SystemMemory();

  void begin_iteration() noexcept {}
  void end_iteration() noexcept {}
  static Block take(std::uint64_t bytes, std::uint32_t thread) noexcept;
  static void give(Block block, std::uint32_t thread) noexcept;
  static std::byte* data(Block block) noexcept { return static_cast<std::byte*>(block); }

  // By how much the process has grown: pages that nobody has touched do not count.
  std::uint64_t reserved() const noexcept;

 private:
  std::uint64_t resident() const noexcept;

  int file_;
  std::uint64_t before_ = 0;
};

}  // namespace ebb::world
