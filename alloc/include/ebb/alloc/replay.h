// SPDX-License-Identifier: Apache-2.0
// Iterations repeat: what one allocates is recorded, packed ahead of time, and the next ones get
// the planned addresses. A plan is a hint, the heap's occupancy is the truth: an iteration that
// changes gets other addresses, never memory in use. Used by gc for every open iteration, and by
// `ebb replay`. [alloc.replay]
#pragma once

#include <ebb/alloc/heap.h>
#include <ebb/alloc/plan.h>
#include <ebb/alloc/sequence.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0 {

struct PlanSetOptions {
  std::uint64_t nodes = 300'000;  // of each plan's exact search, see PlanOptions
  // What addresses are multiples of: the default alignment of the heaps that are iterated in.
  Align granule = default_align_cpu;
};

// What a plan set's iterations did so far.
struct PlanSetStats {
  std::uint64_t iterations = 0;  // that allocated anything
  std::uint64_t followed = 0;    // of these, those of which a plan placed every block
  std::uint64_t deviated = 0;    // those that left the plan that they had begun on
  std::uint64_t displaced = 0;   // blocks that could not have the address a plan had for them, or
                                 // that no plan knew of while one was followed
  std::uint64_t planned = 0;     // plans made, those that replaced others included
  Bytes height;                  // of the highest plan there is
};

// One plan, in figures.
struct PlanInfo {
  std::size_t buffers = 0;    // that it places
  std::size_t outliving = 0;  // that it leaves out, since they outlive their iteration
  Bytes height;
  Bytes max_live;
  bool exact = false;  // the height is proven least

  double gap() const noexcept { return plan_gap(height, max_live); }
};

// The plans of one place in the program where iterations are opened. An iteration is planned once
// it was seen twice; those that follow each other may differ, each kind then has a plan of its own.
// Thread-safe; its replays may outlive it.
class PlanSet {
 public:
  explicit PlanSet(PlanSetOptions options = {}, Place place = {});
  PlanSet(const PlanSet&) = delete;
  PlanSet& operator=(const PlanSet&) = delete;
  PlanSet(PlanSet&&) = delete;
  PlanSet& operator=(PlanSet&&) = delete;
  ~PlanSet();

  // Returns whether something was recorded twice that has no plan yet, and nobody works on it.
  bool has_work() const noexcept;
  // Returns whether there is work of which no thread has been told. The caller tells one, or, where
  // it cannot, unclaims it. An end() says so again as long as there is.
  bool claim_work() noexcept;
  void unclaim_work() noexcept;
  // Plans what there is to plan, which may take long: meant for another thread than the one that
  // iterates. cancel is asked now and then; what is cancelled stays to be done. Without memory,
  // no plan is made.
  void work(const std::function<bool()>& cancel = {}) noexcept;
  // Waits, and works where nobody does, until all that was recorded twice has a plan. False: that
  // took longer than patience.
  bool wait(std::chrono::milliseconds patience);

  PlanSetStats stats() const;
  std::vector<PlanInfo> plans() const;
  const Place& place() const noexcept;
  Align granule() const noexcept;

  // Returns the recorded iterations that the plans are of, newest first. Where plans were loaded,
  // places in them may point to names that end with the set.
  std::vector<AllocationSequence> sequences() const;

  // Returns the plans, and of which place they are, as text: versioned, with a checksum. Throws
  // std::invalid_argument for a place whose file has a name of more than 4,096 bytes.
  std::string save() const;
  // Adds the plans of such a text before its own, in their order; the first iteration that fits one
  // follows it. Throws std::invalid_argument, which names the line, counted from first_line, and
  // adds nothing, for another version, a text that was cut off or changed, and plans that are none,
  // or none for this place or this device.
  void load(std::string_view text, std::size_t first_line = 1);

  class Impl;
  Impl& impl() noexcept { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;  // a replay has it, too
};

// One set's plans in a text that has those of several, one after the other.
struct SavedPlans {
  std::string file;  // of the set's place, with line
  std::uint32_t line = 0;
  Align granule = default_align_cpu;  // of the set, see PlanSetOptions
  std::size_t first_line = 1;         // the number of the text's first one, for PlanSet::load
  std::string_view text;              // what PlanSet::save returned; a part of the whole
};

// Returns the parts of such a text, in their order; an empty one has none. Throws
// std::invalid_argument, which names the line, for another version, and where one was cut off or
// changed; what else PlanSet::load refuses, that does.
std::vector<SavedPlans> split_plans(std::string_view text);

// One open iteration's way along its plan. Begins, allocates and ends on one thread, which owns the
// heap; used again for later iterations without a heap call.
class Replay {
 public:
  Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  Replay(Replay&&) = delete;
  Replay& operator=(Replay&&) = delete;
  ~Replay();  // ends it, on its thread

  // Begins an iteration. The heap that its first take() names is the one it goes along with; if
  // another replay of this thread is under way there, this one is nested in it. [gc.nest]
  void begin(PlanSet& set) noexcept { begin(set, set.place()); }
  // The same, with the set's place as the caller has it: its name outlives all that records the
  // iteration, where that of a set that was loaded may not.
  void begin(PlanSet& set, const Place& place) noexcept;
  // As Heap::take_block of heap, which the caller owns.
  [[nodiscard]] BlockRecord* take(Heap& heap, Bytes bytes, Align align, Stream stream,
                                  const Place& place) noexcept;
  // As Heap::take_cell_with_block.
  [[nodiscard]] Cell* take_cell_with_block(Heap& heap, Bytes bytes, Align align,
                                           const Stream& stream, const Place& place) noexcept;
  // Begins to go along with heap, for what is made on stream, before anything is. Returns whether
  // it follows a plan, in a range of its own. [alloc.graph]
  bool attach(Heap& heap, Stream stream) noexcept;
  // Whether it still does, and has had every block where the plan has it.
  bool is_as_planned() const noexcept;
  // Blocks that other threads freed count as freed by now: called where those threads have ended
  // their share of the work.
  void join() noexcept;
  // Ends the iteration. Blocks that are alive stay where they are, and are the heap's like any
  // other. Returns whether the set has work that no thread has been told of. Once more is fine.
  bool end() noexcept;

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace ebb::inline v0
