// SPDX-License-Identifier: Apache-2.0
// An executor over a TBB task arena, ebb's own or borrowed from the host. [rt.exec] [rt.global]
#include "task_queue.h"

#include <ebb/alloc/fork.h>
#include <ebb/runtime/executor.h>
#include <ebb/runtime/interop/tbb.h>

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace ebb::inline v0 {
namespace {

// Shared with the pumps, the pieces of work that TBB sees: one that TBB runs only after the
// executor has ended finds an empty queue.
struct PumpState {
  std::mutex mutex;  // guards the rest
  detail::TaskQueue queue;
  unsigned pumps = 0;    // enqueued and not yet ended
  unsigned running = 0;  // tasks being run, by pumps or by run_one
  std::condition_variable idle;
};

// How long the end of an executor waits for TBB to run the pumps it was given.
constexpr std::chrono::milliseconds pump_wait{500};

// Takes a task and counts it as running, or returns null.
Task* take_task(PumpState& state, Task* (detail::TaskQueue::*pop)() noexcept) noexcept {
  const std::lock_guard lock(state.mutex);
  Task* const task = (state.queue.*pop)();
  state.running += task != nullptr ? 1 : 0;
  return task;
}

void end_running(PumpState& state) noexcept {
  const std::lock_guard lock(state.mutex);
  if (--state.running == 0) {
    state.idle.notify_all();
  }
}

// What TBB runs: one task, then a pump for the next one, so that TBB may move the worker to
// another arena in between. While it counts as running the executor, and so the arena, is there.
void pump(tbb::task_arena& arena, const std::shared_ptr<PumpState>& state) noexcept {
  for (;;) {
    Task* const task = take_task(*state, &detail::TaskQueue::pop_oldest);
    if (task != nullptr) {
      task->execute();
    }
    bool more = false;
    {
      const std::lock_guard lock(state->mutex);
      more = task != nullptr && !state->queue.empty();
      state->pumps -= more ? 0 : 1;
      state->idle.notify_all();
    }
    bool handed_on = !more;
    if (more) {
      try {
        arena.enqueue([&arena, state] { pump(arena, state); });
        handed_on = true;
      } catch (...) {  // no memory for TBB's task: go on here
      }
    }
    if (task != nullptr) {
      end_running(*state);
    }
    if (handed_on) {
      return;
    }
  }
}

// The arena and its queue. In a forked child they are left as they are: TBB's threads are not
// there, and one of them may have held the mutex.
class PumpedArena {
 public:
  PumpedArena(tbb::task_arena& arena, unsigned concurrency)
      : arena_(&arena), concurrency_(std::max(concurrency, 1u)) {}
  PumpedArena(std::unique_ptr<tbb::task_arena> arena, unsigned concurrency)
      : own_arena_(std::move(arena)),
        arena_(own_arena_.get()),
        concurrency_(std::max(concurrency, 1u)) {}
  PumpedArena(const PumpedArena&) = delete;
  PumpedArena& operator=(const PumpedArena&) = delete;
  PumpedArena(PumpedArena&&) = delete;
  PumpedArena& operator=(PumpedArena&&) = delete;
  ~PumpedArena() {
    while (run_one()) {
    }
    std::unique_lock lock(state_->mutex);
    // No deadline: a task refers to its submitter's memory, so leaving it behind is no way out.
    state_->idle.wait(lock, [this] { return state_->running == 0; });
    // Pumps that TBB has not run yet find nothing to do and may come later, but a process that
    // ends before would leave their memory to the leak checkers.
    state_->idle.wait_for(lock, pump_wait, [this] { return state_->pumps == 0; });
  }

  unsigned concurrency() const noexcept { return concurrency_; }

  void submit(Task& task) {
    task.bind_to_current_owner();
    bool needs_pump = false;
    {
      const std::lock_guard lock(state_->mutex);
      state_->queue.push(task);
      needs_pump = state_->pumps + 1 < concurrency_;
      state_->pumps += needs_pump ? 1 : 0;
    }
    if (needs_pump) {
      try {
        arena_->enqueue([arena = arena_, state = state_] { pump(*arena, state); });
      } catch (...) {
        const std::lock_guard lock(state_->mutex);
        --state_->pumps;
        if (state_->queue.remove(task)) {  // else another pump has taken it already
          throw;
        }
      }
    }
  }

  bool run_one() noexcept {
    Task* const task = take_task(*state_, &detail::TaskQueue::pop_newest);
    if (task != nullptr) {
      task->execute();
      end_running(*state_);
    }
    return task != nullptr;
  }

 private:
  std::unique_ptr<tbb::task_arena> own_arena_;
  tbb::task_arena* arena_;
  unsigned concurrency_;
  std::shared_ptr<PumpState> state_ = std::make_shared<PumpState>();
};

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(std::unique_ptr<PumpedArena> arena) : arena_(std::move(arena)) {}

  unsigned concurrency() const noexcept override { return arena_->concurrency(); }
  void submit(Task& task) override {
    arena_.mark().require_own_process("Executor::submit");
    arena_->submit(task);
  }
  bool run_one() noexcept override { return !arena_.mark().in_child() && arena_->run_one(); }

 private:
  detail::OwnedHere<PumpedArena> arena_;
};

}  // namespace

std::unique_ptr<Executor> make_tbb_executor(std::string name, unsigned threads,
                                            const LogHook& log) {
  const auto allowed = static_cast<unsigned>(
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  const unsigned granted = std::max(1u, std::min(threads, allowed));
  if (granted < threads && log) {
    log(LogLevel::warning, std::move(name) + ": " + std::to_string(threads) +
                               " threads were asked for and TBB allows " + std::to_string(allowed) +
                               " in this process; going on with " + std::to_string(granted) +
                               " (ebb takes no global_control)");
  }
  return std::make_unique<TbbExecutor>(std::make_unique<PumpedArena>(
      std::make_unique<tbb::task_arena>(static_cast<int>(granted), 1), granted));
}

std::unique_ptr<Executor> borrow_arena(tbb::task_arena& arena) {
  return std::make_unique<TbbExecutor>(
      std::make_unique<PumpedArena>(arena, static_cast<unsigned>(arena.max_concurrency())));
}

}  // namespace ebb::inline v0
