// SPDX-License-Identifier: Apache-2.0
// The inside of a Loader: slots, tickets and workers. Shared by the loader, its leases and its
// submitted tasks, so that each may be the last to go. Thread rules stand at each member.
#pragma once

#include "batch_layout.h"
#include "batch_slot.h"
#include "device_stage.h"
#include "sample_cache.h"
#include "scratch.h"
#include "skip_log.h"
#include "stage_clock.h"

#include <ebb/loaders/loader.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace ebb::inline v0 {

// A ticket is one batch to fill. Whoever takes it first, a worker or next() itself, opens it: finds
// out which samples it has. Then all may take ranges of its samples. Workers are tasks without a
// ticket of their own: each takes a range of the lowest one when it runs, so that helping with a
// ticket needs no talk with whoever is at it.
class Loader::Core : public std::enable_shared_from_this<Core> {
 public:
  using Slot = detail::BatchSlot<Core>;
  static constexpr std::uint64_t no_index = ~std::uint64_t{0};

  Core(Runtime& rt, AnyDataset data, const LoaderOptions& options, Place at);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  Core(Core&&) = delete;
  Core& operator=(Core&&) = delete;
  ~Core();

  // The second half of construction: the slots and the workers. Throws OutOfMemory.
  void allocate(Runtime& rt);
  // Waits for running loads, at most 2 s. Afterwards nothing is begun any more.
  void shut_down() noexcept;
  bool in_child() const noexcept { return domain_->in_child(); }
  void require_usable(const char* function) const { domain_->require_usable(function); }
  // The end in a forked child: all stays as it is.
  void leave_behind() noexcept;

  // The consumer's thread.
  std::optional<Batch> next();
  void begin_epoch(std::uint64_t epoch);

  LoaderStats stats() const noexcept;
  detail::SkipLog& skips() noexcept { return skips_; }
  // Whether scratch memory stays with a worker: not under a limit, where others may need it.
  bool keeps_scratch() const noexcept { return options.memory_limit == Bytes{}; }

  const AnyDataset data;
  const LoaderOptions options;        // with order and rank as they follow from the others
  const std::uint64_t epoch_samples;  // of all ranks
  const std::uint64_t batches;        // an epoch

  // The consumer's thread.
  std::uint64_t next_epoch = 0;
  std::uint64_t cursor_epoch = 0;
  std::uint64_t cursor_seq = 0;
  bool restored = false;  // the cursor is where the next epoch, if it is the cursor's, begins
  std::shared_ptr<Core> left_behind;  // this, in a forked child: never destroyed

 private:
  using Lock = std::unique_lock<std::mutex>;
  using SlotState = detail::SlotState;

  // What a filling thread brings along.
  struct Hands {
    Hands(Owner owner, bool keeps_scratch) : scratch(owner, keeps_scratch) {}
    // Makes what is needed for a first batch. When making local fails, fill tries again and says so
    // at the batch that needs it.
    void prepare(const AnyDataset& dataset, const Order& an_order);

    std::unique_ptr<detail::ErasedLocal> local;
    detail::Scratch scratch;
    OrderScratch order;
    detail::StageClocks clocks;
    // For reports. Relaxed: which sample it is at; and, with the mutex held, which slot, or null.
    std::atomic<std::uint64_t> current{no_index};
    const Slot* at = nullptr;
  };

  // Some samples of a slot that one thread fills, and what came of it.
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t failed_at = Slot::none;  // place in the batch
    std::exception_ptr error;
    std::vector<std::size_t> left_out;
  };

  // One task, submitted again for each range.
  class Worker final : public Task {
   public:
    Worker(Core& core, Owner owner) : hands(owner, core.keeps_scratch()), core_(core) {}

    Hands hands;                 // of the thread that runs it
    bool submitted = false;      // guarded by the core's mutex
    std::shared_ptr<Core> hold;  // set before submit, taken by run

   private:
    void run() noexcept override { core_.work(*this); }
    Core& core_;
  };

  // Finding and changing slots: with the mutex held.
  Slot* find(std::uint64_t seq) noexcept;
  Slot* find_free() noexcept;
  Slot* find_work() noexcept;
  bool is_current(const Slot& slot) const noexcept;
  // How many samples may be claimed now; a queued ticket counts as all of its own.
  std::size_t claimable(const Slot& slot) const noexcept;
  std::size_t tasks_wanted() const noexcept;
  void assign(Slot& slot, std::uint64_t seq) noexcept;
  Order order_of(std::uint64_t epoch) const;
  void cancel_tickets(Lock& lock) noexcept;  // may give the mutex up
  bool is_valid() const noexcept;
  // Assigns tickets to free slots and wakes workers; unlocks while it submits.
  void pump(Lock& lock) noexcept;
  bool submit(Lock& lock, Worker& worker) noexcept;
  void work(Worker& worker) noexcept;
  // Opens a ticket, or fills a range of it; gives the mutex up meanwhile.
  void help(Lock& lock, Slot& slot, Hands& hands) noexcept;
  void open_ticket(Lock& lock, Slot& slot, OrderScratch& scratch) noexcept;
  static void take_in(Slot& slot, Range& range) noexcept;
  void leave(Lock& lock, Slot& slot) noexcept;
  bool is_complete(const Slot& slot) const noexcept;

  // Filling: without the mutex, by a thread that is busy with the slot.
  void find_samples(Slot& slot, OrderScratch& scratch);
  void avoid_skipped(Slot& slot);
  void find_lengths(Slot& slot);
  std::exception_ptr complete(Slot& slot) noexcept;  // of all its samples, by one thread
  static void leave_out(Slot& slot) noexcept;
  void clear(Slot& slot) noexcept;
  void drop(detail::Fetched& fetched) noexcept;
  std::size_t range_size(std::size_t samples) const noexcept;
  void fill(Slot& slot, Hands& hands, Range& range) noexcept;
  void load_range(Slot& slot, Hands& hands, detail::RangeFill& walk, Range& range);
  void load_sample(Slot& slot, Hands& hands, detail::RangeFill& walk, std::size_t place);
  std::span<const std::byte> decode(Slot& slot, Hands& hands, detail::RangeFill& walk,
                                    std::size_t place);
  // Whether the sample that failed is done without: left out, or another one is in its place.
  bool do_without(Slot& slot, Hands& hands, detail::RangeFill& walk, Range& range,
                  const std::exception_ptr& error) noexcept;
  bool note_skip(const Slot& slot, std::uint64_t index, std::exception_ptr& why);
  std::uint64_t substitute_for(const Slot& slot, std::size_t place,
                               std::uint64_t attempt) const noexcept;
  bool substitute(Slot& slot, Hands& hands, detail::RangeFill& walk, std::size_t place);
  std::exception_ptr load_error(const Slot& slot, std::uint64_t index,
                                const std::exception_ptr& error,
                                const char* stage = nullptr) const noexcept;

  // Fetching: threads of the loader's own.
  void start_fetching();
  void fetch_on() noexcept;
  Slot* find_fetch(std::size_t& place) noexcept;  // with the mutex held
  void fetch(Slot& slot, std::size_t place, detail::Scratch& scratch) noexcept;

  // Handing out: the consumer's thread, with the mutex held at first.
  Slot& wait_for_ready(Lock& lock);
  bool is_copying() const noexcept;
  Batch lease(Lock& lock, Slot& slot);
  // Runs one waiting task where nobody else would: an executor that the host's global_control has
  // left without workers. Gives the mutex up meanwhile. Returns whether it ran one.
  bool run_without_workers(Lock& lock) noexcept;
  [[noreturn]] void throw_failed(Lock& lock, Slot& slot);
  [[noreturn]] void throw_stalled(Lock& lock);
  // The end of a lease: any thread, without the mutex.
  static void give_back(void* context, void* data) noexcept;
  static constexpr PtrOps lease_ops{give_back, "loader lease"};

  std::string describe_stuck() const;  // with the mutex held

  const std::shared_ptr<Domain> domain_;
  Executor* const executor_;  // null without workers; used while the runtime lives
  const detail::BatchLayout layout_;
  const std::uint64_t ahead_;  // tickets that may be assigned and not yet handed out
  const Birth birth_;          // of slots and leases
  Pool pool_;
  const Owner owner_;
  std::deque<Slot> slots_;  // a deque: slots do not move
  std::deque<Worker> workers_;
  Hands mine_;                                  // of the consumer's thread
  std::unique_ptr<detail::SampleCache> cache_;  // null: none
  std::unique_ptr<detail::DeviceStage> stage_;  // null: batches stay in host memory
  detail::SkipLog skips_;
  detail::StageClock fetch_clock_;
  detail::StageClock copy_clock_;
  // Relaxed: how long a sample took lately, to choose ranges; 0: not known.
  std::atomic<std::uint64_t> sample_ns_{0};
  // Bytes fetched and not used yet. Relaxed: it is compared with a limit under the mutex, which
  // those who make it less take before they tell.
  std::atomic<std::uint64_t> fetched_{0};

  // Written with the mutex held; fills read it relaxed to see that they are cancelled.
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> submit_failed_{false};  // was logged; relaxed

  // Guards what follows, and the slots and workers as said there. Never held while foreign code
  // runs: no load, no submit, no release of a storage or an exception, no log.
  mutable std::mutex mutex_;
  std::condition_variable changed_;   // a slot is ready, failed or free; a task has ended
  std::condition_variable to_fetch_;  // a ticket was opened or used up; for fetch threads
  bool closing_ = false;
  bool begun_ = false;
  bool workers_late_ = false;  // next() took a ticket over, and no worker has come since
  std::uint64_t epoch_ = 0;
  Order order_;                    // of the epoch
  std::uint64_t next_ticket_ = 0;  // the next to assign
  std::uint64_t deliver_ = 0;      // the next to hand out
  std::uint32_t idle_tasks_ = 0;   // submitted workers that have not come yet
  std::uint32_t tasks_ = 0;        // submitted workers, and fetch threads
  std::optional<TimePoint> begun_at_;
  std::exception_ptr epoch_error_;
  LoaderStats counts_;
};

}  // namespace ebb::inline v0
