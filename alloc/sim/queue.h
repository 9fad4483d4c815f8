// SPDX-License-Identifier: Apache-2.0
// A simulated stream: its work runs in order on a thread of its own. Callers push, any thread; the
// thread starts with the first work. [alloc.sim]
#pragma once

#include "sim/call_gate.h"
#include "sim/work.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include <semaphore.h>

namespace ebb::inline v0 {

// How fast a queue goes. Relaxed: a caller who sets it is not ordered with the queue.
struct SimPace {
  std::atomic<bool> is_held{false};
  std::atomic<std::uint64_t> steps{0};  // that a held one may still run
  std::atomic<std::int64_t> delay_us{0};
  std::atomic<std::int64_t> lag_us{0};
};

// Callers hand over by a list without a lock and a semaphore, and the queue hands nothing back by
// them: a caller that pushes must not come to be ordered after the work that is done.
class SimQueue {
 public:
  SimQueue(Device device, std::shared_ptr<CallGate> gate);
  SimQueue(const SimQueue&) = delete;
  SimQueue& operator=(const SimQueue&) = delete;
  SimQueue(SimQueue&&) = delete;
  SimQueue& operator=(SimQueue&&) = delete;
  // stop() came first, where work was pushed.
  ~SimQueue();

  Device device() const noexcept { return device_; }
  SimPace& pace() noexcept { return pace_; }

  // self is this queue: the thread keeps it alive.
  static void push(const std::shared_ptr<SimQueue>& self, SimWork work);
  // Whether all that was pushed has run. With acquire, who hears so comes after it.
  bool is_idle(std::memory_order order) const noexcept {
    return completed_.load(order) == pushed_.load(std::memory_order_relaxed);
  }
  std::uint64_t pushed() const noexcept { return pushed_.load(std::memory_order_relaxed); }
  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_relaxed); }
  // The thread ends after what was pushed, which is the last. Only where something was.
  void close() noexcept { ::sem_post(&available_); }
  // Whether the thread has ended, or was never started.
  bool is_over() const noexcept { return is_over_.load(std::memory_order_relaxed); }

  // Drops what has not begun and ends the thread. One that a host function keeps beyond the
  // deadline is left to itself. No caller but this one, from now on.
  void stop(std::chrono::steady_clock::time_point deadline) noexcept;

 private:
  struct Item {
    SimWork work;
    Item* next = nullptr;
  };

  void start(const std::shared_ptr<SimQueue>& self);
  void loop() noexcept;
  Item* take() noexcept;
  bool may_go() noexcept;
  bool pause(std::chrono::microseconds time) const noexcept;
  void run(const SimWork& work) noexcept;
  void wait_for(const SimMark& mark) const noexcept;
  void tell(SimMark& mark) noexcept;
  bool is_stopping() const noexcept { return is_stopping_.load(std::memory_order_relaxed); }

  const Device device_;
  const std::shared_ptr<CallGate> gate_;
  SimPace pace_;
  // The newest first. Release by who pushes, acquire by the queue that takes all.
  std::atomic<Item*> incoming_{nullptr};
  sem_t available_{};      // one for each item, posted after it was pushed, and one for the end
  Item* taken_ = nullptr;  // the queue's own: the oldest first
  std::int64_t told_last_ = 0;  // the queue's own
  std::atomic<std::uint64_t> pushed_{0};
  // Release; only who drains acquires it.
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<bool> is_over_{true};
  std::atomic<bool> is_stopping_{false};
  std::mutex start_mutex_;  // guards thread_; the queue never takes it
  std::atomic<bool> is_started_{false};
  std::thread thread_;
};

}  // namespace ebb::inline v0
