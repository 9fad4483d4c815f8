// SPDX-License-Identifier: Apache-2.0
// The front door: a loop, the guard for one pass of its body, and a range of guarded steps.
// A loop's iterations open and close on the thread that makes them; stop() is for any thread.
#pragma once

#include <ebb/gc/close.h>
#include <ebb/gc/owner_resource.h>
#include <ebb/gc/raw_memory.h>
#include <ebb/runtime/batch_source.h>
#include <ebb/runtime/runtime.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

struct LoopOptions {
  std::string name = "loop";
  Milliseconds deadline{250};  // how long a close waits for stragglers; forever: reports and waits
  Policy policy = Policy::adopt;
  // First iterations, whose stragglers are neither reported nor thrown; Policy::revoke and
  // straggler_bytes hold for them too.
  std::uint64_t warmup = 3;
  Bytes straggler_bytes{std::size_t{64} << 20};
  unsigned in_flight = 2;  // iterations that may be closed while devices still work for them
  // Whether what straggled before is traced when it is made again, for the report that escalates.
  bool traces = true;
  // Whether iterations that repeat get addresses planned ahead of time. [alloc.replay]
  bool plans = true;
};

// The plans of the iterations that one line of the program opens: for one kind of memory, so that a
// line whose iterations use a device has two.
struct LoopPlans {
  Place place;  // of loaded plans, its file's name ends with the loop
  PlanSetStats stats;
  std::vector<PlanInfo> plans;  // newest first
  bool on_device = false;       // of a device's memory, not the host's
};

// What a loop's iterations used so far.
struct LoopStats {
  std::uint64_t iterations = 0;
  std::uint64_t stragglers = 0;  // storages adopted after warmup
  Bytes live_peak;               // of the runtime's pool
  Bytes reserved;                // of the runtime's pool
};

// A value that the body logged.
struct LoggedValue {
  std::string_view name;
  double last = 0;
  double mean = 0;  // since the last reset_logged
  std::uint64_t count = 0;
};

class Iteration;
class Loop;
template <BatchSource S>
class Steps;

namespace detail {
void require_one_epoch(std::uint64_t epochs);
void store_error(Loop& loop, std::exception_ptr error) noexcept;
std::vector<std::shared_ptr<PlanSet>> plan_sets(const Loop& loop);
}  // namespace detail

struct OverOptions {
  std::uint64_t epochs = 1;  // how many to run, from the source's next one on
};

// A series of iterations. Must outlive them. Destroy it before the runtime; where it is the other
// way round, runtime() may not be called any more and no iteration opened, which throws.
//
//   for (auto& batch : my_batches) { ebb::Iteration it(loop); ... }
//   loop.finish();
class Loop {
 public:
  explicit Loop(Runtime& rt, LoopOptions options = {});
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  Loop(Loop&&) = delete;
  Loop& operator=(Loop&&) = delete;
  ~Loop();  // logs an error that nobody claimed

  // Returns a range of steps over the batches of source, which must outlive it. Leaving the range
  // early (break, return, an exception) closes the step. Throws std::invalid_argument for more
  // than one epoch of a source without begin_epoch.
  template <BatchSource S>
  Steps<S> over(S& source, OverOptions options = {}, Place at = Place::here()) {
    require_own_process("Loop::over");
    return Steps<S>(*this, source, options, at);
  }

  // The last wait: until no device works for a closed iteration, and deferred releases are done.
  // Then throws what a destructor stored, or a function of launch_host threw since its iteration
  // had closed, if anything. Call it after the loop.
  void finish();
  // Adds a hook that a close runs, on its thread, when it would have to wait for a straggler: where
  // a garbage-collected language that holds tensors collects. What it throws, the close throws.
  // Hooks run on one thread at a time; an iteration that a hook closes runs none. [gc.close]
  void on_collect(std::function<void()> hook);
  // Waits until iterations that were seen twice are planned, and plans them on this thread where no
  // other does; else some later iteration is the first to follow its plan. False: patience has
  // ended first.
  bool wait_plan(Milliseconds patience = Milliseconds(60'000));
  // Returns what is planned, by the places where iterations were opened; for devices last.
  std::vector<LoopPlans> plans() const;
  // Writes the plans to a file, for the next run of the same program, wait_plan() before it to have
  // all: beside it first, so that a file that is there is replaced as a whole or not at all. Throws
  // std::runtime_error where that fails.
  void save_plans(const std::string& path) const;
  // Adds the plans of such a file, and the first iteration that fits one follows it: call it before
  // that. Throws std::runtime_error where the file cannot be read, and std::invalid_argument, which
  // names the line, for one that was changed or cut off, or is of another version; no plan is added
  // then. What was changed in the program since costs nothing but its plan.
  void load_plans(const std::string& path);
  // Ends over() after the current step. Async-signal-safe.
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }

  Runtime& runtime() const noexcept;
  const LoopOptions& options() const noexcept;
  LoopStats stats() const noexcept;

  // The values of Iteration::log, in order of first use; valid until the next log.
  std::vector<LoggedValue> logged() const;
  void reset_logged() noexcept;

 private:
  friend class Iteration;
  friend void detail::store_error(Loop& loop, std::exception_ptr error) noexcept;
  friend std::vector<std::shared_ptr<PlanSet>> detail::plan_sets(const Loop& loop);
  void require_own_process(const char* function) const;  // else throws ForkedError
  class Impl;
  detail::OwnedHere<Impl> impl_;
  // Relaxed: only the flag itself is passed on.
  std::atomic<bool> stopped_{false};
};

// The guard: from construction to close, the tensors that this thread makes belong to it. Closing
// waits until they are finalized, at most the loop's deadline, and reports what is still alive.
// Make it first in the body, so that it closes after every local.
class Iteration {
 public:
  // Throws what an earlier destructor of the loop could not, and what a function of launch_host
  // threw since its iteration had closed.
  explicit Iteration(Loop& loop, Place at = Place::here());
  Iteration(const Iteration&) = delete;
  Iteration& operator=(const Iteration&) = delete;
  Iteration(Iteration&&) = delete;
  Iteration& operator=(Iteration&&) = delete;
  // Closes by the same steps; never throws: the loop's next guard or finish() does.
  ~Iteration() = default;

  // Closes now. Throws StragglerError by the loop's policy, or the first error of a task. On
  // another thread, or out of order, throws std::invalid_argument and closes nothing.
  CloseResult close() { return open_.close(); }
  // The same, but with a report only when it has news, such as a place that straggles for the first
  // time: what the destructor and ++ do.
  CloseResult close_briefly() { return open_.close_briefly(); }

  bool is_open() const noexcept { return open_.is_open(); }

  // The number of this iteration in its loop, from 0.
  std::uint64_t index() const noexcept { return index_; }
  // Returns whether this is the n-th, 2n-th, ... iteration. n must not be 0.
  bool every(std::uint64_t n) const;
  Owner owner() const noexcept { return open_.owner(); }
  operator Owner() const noexcept { return owner(); }  // NOLINT(google-explicit-constructor)
  Loop& loop() const noexcept { return loop_; }

  // Moves the storage of tensor into the parent: the enclosing iteration, or the runtime. Keeping
  // a view of a loader's batch copies it. [gc.keep]
  [[nodiscard]] Tensor keep(const Tensor& tensor, Place at = Place::here()) const;
  // Returns a copy of the view's elements that belongs to the parent.
  [[nodiscard]] Tensor keep_copy(const Tensor& tensor, Place at = Place::here()) const;

  // Returns uninitialised bytes that belong to this iteration, for kernels of your own; as its
  // tensors they are waited for at close. On owner's stream unless one is given. Throws
  // OutOfMemory.
  [[nodiscard]] Storage allocate(Bytes bytes, Place at = Place::here()) const;
  [[nodiscard]] Storage allocate(Bytes bytes, Stream stream, Place at = Place::here()) const;
  // Returns this iteration as a resource of standard containers; see resource_of.
  //
  //   std::pmr::vector<Box> boxes(it.resource());
  std::pmr::memory_resource* resource(Place at = Place::here()) const {
    return resource_of(owner(), at);
  }

  // Returns this iteration as an allocator by bare addresses, as Thrust wants it; see RawMemory.
  RawMemory raw(Stream stream, Place at = Place::here()) const {
    return RawMemory(owner().on(stream), at);
  }
  RawMemory raw(Place at = Place::here()) const { return raw(owner().stream(), at); }

  // Notes a value by name; keeps nothing alive. The tensor must hold one element. One on a device
  // is read when the device gets there: Loop::logged() and finish() look, and only where 256 such
  // values are still to come does this wait for the oldest.
  void log(std::string_view name, double value);
  void log(std::string_view name, const Tensor& value);

  // Runs function on the step executor as a job of this iteration; close waits for it and throws
  // its exception if it is the first. Allocates the task.
  template <class F>
  void spawn(F&& function, Place at = Place::here()) {
    class Spawned final : public Task {
     public:
      Spawned(std::decay_t<F> f, Owner owner, Place at)
          : function_(std::move(f)), job_(owner, at) {}

     private:
      void run() noexcept override {
        std::unique_ptr<Spawned> self(this);
        try {
          function_();
        } catch (...) {
          job_.fail(std::current_exception());
        }
      }
      std::decay_t<F> function_;
      Job job_;
    };
    OwnerScope scope(owner());
    auto task = std::make_unique<Spawned>(std::forward<F>(function), owner(), at);
    loop_.runtime().step_executor().submit(*task);
    task.release();  // NOLINT(bugprone-unused-return-value): run() owns it now
  }

 private:
  Loop& loop_;
  std::uint64_t index_;
  OpenOwner open_;
};

// An iteration with its batch.
template <class Batch>
class Step : public Iteration {
 public:
  Step(Loop& loop, Batch& batch, std::uint64_t epoch, Place at)
      : Iteration(loop, at), batch_(batch), epoch_(epoch) {}

  Batch& batch() const noexcept { return batch_; }
  std::uint64_t epoch() const noexcept { return epoch_; }
  // Returns the first n fields of the batch, for auto [x, y] = it.fields<2>().
  template <std::size_t n>
  auto fields() const {
    return batch_.template fields<n>();
  }

 private:
  Batch& batch_;
  std::uint64_t epoch_;
};

// The range of Loop::over: an input range, to be iterated once. ++ closes the step (and may
// throw), tells the source, and opens the next one.
template <BatchSource S>
class [[nodiscard]] Steps {
 public:
  using Batch = typename S::batch_type;
  struct Sentinel {};
  class Iterator {
   public:
    explicit Iterator(Steps* steps) : steps_(steps) {}
    Step<Batch>& operator*() const { return *steps_->step_; }
    Step<Batch>* operator->() const { return &*steps_->step_; }
    Iterator& operator++() {
      steps_->advance();
      return *this;
    }
    bool operator==(Sentinel) const { return !steps_->step_.has_value(); }

   private:
    Steps* steps_;
  };

  Steps(Loop& loop, S& source, OverOptions options, Place at)
      : loop_(loop), source_(source), options_(options), at_(at) {
    if constexpr (!EpochSource<S>) {
      detail::require_one_epoch(options.epochs);
    }
    if constexpr (ResumableSource<S>) {
      first_epoch_ = source_.next_epoch();
    }
  }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  Steps(Steps&&) = delete;
  Steps& operator=(Steps&&) = delete;
  // The step was left by break or return: it closes as a whole one, so its batch counts as used.
  // Left by an exception it does not, and a resumed run gets the batch again.
  ~Steps() {
    if (step_.has_value()) {
      const bool failed = std::uncaught_exceptions() > exceptions_;
      step_.reset();
      if (!failed) {
        tell_source_noexcept();
      }
    }
  }

  Iterator begin() {
    if (!begun_) {
      begun_ = true;
      begin_epoch();
      open_next();
    }
    return Iterator(this);
  }
  Sentinel end() const noexcept { return {}; }

 private:
  void begin_epoch() {
    if constexpr (EpochSource<S>) {
      if (epochs_begun_ < options_.epochs) {
        source_.begin_epoch(first_epoch_ + epochs_begun_);
      }
    }
    ++epochs_begun_;
  }

  void open_next() {
    while (!loop_.stopped() && epochs_begun_ <= options_.epochs) {
      batch_ = source_.next();
      if (batch_.has_value()) {
        exceptions_ = std::uncaught_exceptions();
        step_.emplace(loop_, *batch_, first_epoch_ + epochs_begun_ - 1, at_);
        return;
      }
      begin_epoch();
    }
  }

  void advance() {
    step_->close_briefly();
    step_.reset();
    tell_source();
    batch_.reset();
    open_next();
  }

  void tell_source() {
    if constexpr (CursorSource<S>) {
      source_.closed(*batch_);
    }
  }
  void tell_source_noexcept() noexcept {
    try {
      tell_source();
    } catch (...) {
      detail::store_error(loop_, std::current_exception());
    }
  }

  Loop& loop_;
  S& source_;
  OverOptions options_;
  Place at_;
  std::uint64_t first_epoch_ = 0;
  std::uint64_t epochs_begun_ = 0;
  int exceptions_ = 0;
  bool begun_ = false;
  std::optional<Batch> batch_;  // outlives the step
  std::optional<Step<Batch>> step_;
};

}  // namespace ebb::inline v0
