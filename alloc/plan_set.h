// SPDX-License-Identifier: Apache-2.0
// The inside of a PlanSet: the plans there are, what was recorded, and what is to be planned.
// Thread-safe. [alloc.replay]
#pragma once

#include "iteration_plan.h"

#include <ebb/alloc/replay.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0 {

namespace detail {

// What replays follow: replaced as a whole, so that an iteration keeps to those it began with.
struct Plans {
  std::uint64_t version = 0;
  std::vector<std::shared_ptr<const IterationPlan>> list;  // newest first
  std::size_t height = 0;                                  // of the highest
};

}  // namespace detail

class PlanSet::Impl : public std::enable_shared_from_this<PlanSet::Impl> {
 public:
  using Plans = detail::Plans;
  using IterationPlan = detail::IterationPlan;

  Impl(PlanSetOptions its_options, Place its_place);

  // Makes plans the current ones if they are not. No lock where they are.
  void refresh(std::shared_ptr<const Plans>& plans) noexcept;

  // Whether the next iteration is to be left alone: neither followed nor recorded, because the last
  // ones did not repeat.
  bool rests() noexcept;
  void note_followed() noexcept;
  void note_repeating() noexcept;
  void note_unlike() noexcept;

  // Takes what an iteration recorded; unlike: it was not at all as a plan had it. Returns whether
  // there is work now.
  bool take(AllocationSequence recorded, bool unlike) noexcept;
  // The blocks of these entries of a plan outlived an iteration that followed it. Returns whether
  // there is work now.
  bool learn_outliving(const IterationPlan& plan,
                       const std::vector<std::uint32_t>& entries) noexcept;

  bool has_work() const noexcept { return wanted_.load(std::memory_order_relaxed); }
  bool is_unclaimed() const noexcept {
    return has_work() && !claimed_.load(std::memory_order_relaxed);
  }
  bool claim_work() noexcept {
    return has_work() && !claimed_.exchange(true, std::memory_order_relaxed);
  }
  void unclaim_work() noexcept { claimed_.store(false, std::memory_order_relaxed); }
  void work(const std::function<bool()>& cancel) noexcept;
  bool wait(std::chrono::milliseconds patience);
  // Puts loaded plans before those that there are, in their order: all of them, or none and throws
  // std::bad_alloc.
  void add(std::vector<std::shared_ptr<const IterationPlan>> loaded);
  // Returns the set's own copy of a name of a file. What loaded plans, and all that is recorded
  // while they are followed, have for places points to it.
  const char* keep_name(std::string_view name);

  std::shared_ptr<const Plans> plans() const;

  const PlanSetOptions options;
  const Place place;
  std::size_t granule() const noexcept { return options.granule.value(); }

  // Relaxed: figures.
  std::atomic<std::uint64_t> iterations{0};
  std::atomic<std::uint64_t> followed{0};
  std::atomic<std::uint64_t> deviated{0};
  std::atomic<std::uint64_t> displaced{0};
  std::atomic<std::uint64_t> planned{0};

 private:
  static constexpr std::size_t plans_most = 16;
  static constexpr std::size_t seen_most = 4;

  bool is_known(const AllocationSequence& recorded) const;
  bool want(AllocationSequence sequence);
  const IterationPlan* relative_of(const AllocationSequence& sequence, const Plans& from) const;
  void put(const std::shared_ptr<const IterationPlan>& made);
  // The job that the caller is to work on, or null.
  const AllocationSequence* take_job();
  void give_back_job(const AllocationSequence& job) noexcept;
  void end_job(const AllocationSequence& job,
               const std::shared_ptr<const IterationPlan>& made) noexcept;

  // Relaxed: a replay that sees it late takes the old plans once more.
  std::atomic<std::uint64_t> version_{0};
  // Whether there is a job that nobody has taken. Written under the lock; relaxed: a hint.
  std::atomic<bool> wanted_{false};
  // Whether a thread has been told of it. Relaxed: it decides on telling only.
  std::atomic<bool> claimed_{false};
  // Relaxed, and not exact where threads iterate side by side: they only decide how often to try.
  std::atomic<std::uint32_t> unlike_{0};     // iterations running that followed no plan
  std::atomic<std::uint32_t> rest_{0};       // iterations still to be left alone
  std::atomic<std::uint32_t> rest_next_{4};  // for how long the next time

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable done_;
  std::shared_ptr<const Plans> plans_ = std::make_shared<Plans>();
  std::deque<AllocationSequence> seen_;  // once, newest first
  std::deque<AllocationSequence> jobs_;
  // What those are of who works at this moment. A list, since each takes his own off.
  std::list<AllocationSequence> working_;
  std::set<std::string, std::less<>> names_;  // never shrinks
};

}  // namespace ebb::inline v0
