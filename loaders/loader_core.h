// SPDX-License-Identifier: Apache-2.0
// The inside of a Loader: slots, tickets and workers. Shared by the loader, its leases and its
// submitted tasks, so that each may be the last to go. Thread rules stand at each member.
#pragma once

#include "batch_slot.h"
#include "scratch.h"

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

// A ticket is one batch to fill: its slot is queued until a worker, or next() itself, makes it
// filling. Workers are tasks without a ticket of their own: each takes the lowest one queued when
// it runs, so that taking over a ticket needs no talk with whoever was to fill it.
class Loader::Core : public std::enable_shared_from_this<Core> {
 public:
  using Slot = detail::BatchSlot<Core>;

  Core(Runtime& rt, AnyDataset data, const LoaderOptions& options, Place at);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  Core(Core&&) = delete;
  Core& operator=(Core&&) = delete;
  ~Core();

  // The second half of construction: the slots and the workers. Throws OutOfMemory.
  void allocate();
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
  // Whether scratch memory stays with a worker: not under a limit, where others may need it.
  bool keeps_scratch() const noexcept { return options.memory_limit == Bytes{}; }

  const AnyDataset data;
  const LoaderOptions options;
  const std::uint64_t batches;  // an epoch

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
    // Makes local, so that it is not made in some later batch. When that fails, fill tries again
    // and says so at the batch that needs it.
    void prepare(const AnyDataset& dataset) noexcept;

    std::unique_ptr<detail::ErasedLocal> local;
    detail::Scratch scratch;
  };

  // One task, submitted again for each ticket.
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
  Slot* find_queued() noexcept;
  void assign(Slot& slot, std::uint64_t seq) noexcept;
  void start_filling(Slot& slot) noexcept;
  void cancel_tickets() noexcept;
  bool is_valid() const noexcept;
  // Assigns tickets to free slots and wakes workers; unlocks while it submits.
  void pump(Lock& lock) noexcept;
  bool submit(Lock& lock, Worker& worker) noexcept;
  void work(Worker& worker) noexcept;

  // Filling: without the mutex, by the thread that made the slot filling.
  void fill(Slot& slot, Hands& hands) noexcept;
  std::exception_ptr load_error(const Slot& slot) const noexcept;

  // Handing out: the consumer's thread, with the mutex held at first.
  Slot& wait_for_ready(Lock& lock);
  void take_over(Lock& lock, Slot& slot) noexcept;
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
  Hands mine_;  // of the consumer's thread

  // Written with the mutex held; fills read it relaxed to see that they are cancelled.
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> submit_failed_{false};  // was logged; relaxed

  // Guards what follows, and the slots and workers as said there. Never held while foreign code
  // runs: no load, no submit, no release of a storage or an exception, no log.
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a slot is ready, failed or free; a task has ended
  bool closing_ = false;
  bool begun_ = false;
  bool workers_late_ = false;  // next() took a ticket over, and no worker has come since
  std::uint64_t epoch_ = 0;
  Order order_;                    // of the epoch
  std::uint64_t next_ticket_ = 0;  // the next to assign
  std::uint64_t deliver_ = 0;      // the next to hand out
  std::uint32_t queued_ = 0;       // slots
  std::uint32_t idle_tasks_ = 0;   // submitted workers that have not come yet
  std::uint32_t tasks_ = 0;        // submitted workers
  std::exception_ptr epoch_error_;
  LoaderStats counts_;
};

}  // namespace ebb::inline v0
