// SPDX-License-Identifier: Apache-2.0
// What an open iteration has allocated so far, and when that died. Used by Replay, on the thread
// that owns the heap. [alloc.replay]
#pragma once

#include "record.h"

#include <ebb/alloc/sequence.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ebb::inline v0::detail {

// Blocks carry their number here as their mark. Without memory the recording is given
// up, and the iteration goes on without.
class Recording {
 public:
  bool is_on() const noexcept { return on_; }
  void begin() noexcept;
  // Nothing is kept.
  void give_up() noexcept;
  // record is null for what has died already, at dies.
  void add(HeapRecord* record, const SequenceEntry& entry) noexcept;
  // Returns whether the record is one of these, and if so notes that it dies: now, or, freed by
  // another thread, by the next join.
  bool note_death(HeapRecord& record, bool elsewhere) noexcept;
  void join() noexcept;
  // Returns the sequence, and ends the recording: what is alive outlives the iteration.
  AllocationSequence end() noexcept;

 private:
  std::uint32_t now() const noexcept { return static_cast<std::uint32_t>(entries_.size()); }
  void unmark() noexcept;

  AllocationSequence entries_;
  std::vector<HeapRecord*> alive_;              // by number; null: dead
  std::vector<std::uint32_t> freed_elsewhere_;  // since the last join
  bool on_ = false;
};

}  // namespace ebb::inline v0::detail
