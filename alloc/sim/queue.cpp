// SPDX-License-Identifier: Apache-2.0
// The thread of a simulated stream. [alloc.sim]
#include "sim/queue.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

#include <pthread.h>

namespace ebb::inline v0 {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

// Polled, since whatever a waiter sleeps on would order it after others that do.
class Backoff {
 public:
  void wait() noexcept {
    if (++rounds_ < 16) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(microseconds(std::min(rounds_ * 2, 500)));
    }
  }

 private:
  int rounds_ = 0;
};

}  // namespace

SimQueue::SimQueue(Device device, std::shared_ptr<CallGate> gate)
    : device_(device), gate_(std::move(gate)) {
  ::sem_init(&available_, 0, 0);
}

SimQueue::~SimQueue() {
  while (Item* const item = take()) {
    delete item;
  }
  ::sem_destroy(&available_);
}

void SimQueue::push(const std::shared_ptr<SimQueue>& self, SimWork work) {
  auto item = std::make_unique<Item>();
  item->work = std::move(work);
  self->start(self);
  for (const SimTouch& touch : item->work.touches) {
    touch.begin_use();
  }
  self->pushed_.fetch_add(1, std::memory_order_relaxed);
  item->next = self->incoming_.load(std::memory_order_relaxed);
  Item* const raw = item.release();
  while (!self->incoming_.compare_exchange_weak(raw->next, raw, std::memory_order_release,
                                                std::memory_order_relaxed)) {
  }
  ::sem_post(&self->available_);
}

void SimQueue::start(const std::shared_ptr<SimQueue>& self) {
  if (is_started_.load(std::memory_order_relaxed)) {
    return;
  }
  const std::lock_guard lock(start_mutex_);
  if (!is_started_.load(std::memory_order_relaxed)) {
    is_over_.store(false, std::memory_order_relaxed);
    thread_ = std::thread([self] { self->loop(); });
    is_started_.store(true, std::memory_order_relaxed);
  }
}

void SimQueue::loop() noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "ebb/sim-%u", device_.index);
  ::pthread_setname_np(::pthread_self(), name);
  while (true) {
    while (::sem_wait(&available_) != 0) {  // a signal came
    }
    if (!may_go()) {
      break;
    }
    const std::unique_ptr<Item> item(take());
    if (item == nullptr) {
      break;  // closed, and all has run
    }
    run(item->work);
    if (is_stopping()) {
      break;  // the ranges may be gone, if a host function took longer than the machine waited
    }
    for (const SimTouch& touch : item->work.touches) {
      touch.end_use();
    }
    completed_.fetch_add(1, std::memory_order_release);
  }
  is_over_.store(true, std::memory_order_relaxed);
}

// Returns the oldest item, or null. Of the queue, or of who destroys it.
SimQueue::Item* SimQueue::take() noexcept {
  if (taken_ == nullptr) {
    Item* newest = incoming_.exchange(nullptr, std::memory_order_acquire);
    while (newest != nullptr) {
      Item* const older = newest->next;
      newest->next = taken_;
      taken_ = newest;
      newest = older;
    }
  }
  Item* const oldest = taken_;
  if (oldest != nullptr) {
    taken_ = oldest->next;
  }
  return oldest;
}

// Waits while the queue is held, and for its delay; false: it is to stop.
bool SimQueue::may_go() noexcept {
  Backoff backoff;
  while (pace_.is_held.load(std::memory_order_relaxed) && !is_stopping()) {
    std::uint64_t steps = pace_.steps.load(std::memory_order_relaxed);
    if (steps != 0 &&
        pace_.steps.compare_exchange_strong(steps, steps - 1, std::memory_order_relaxed)) {
      break;
    }
    backoff.wait();
  }
  return pause(microseconds(pace_.delay_us.load(std::memory_order_relaxed)));
}

// In slices, so that a long delay does not keep a machine from its end.
bool SimQueue::pause(microseconds time) const noexcept {
  const auto end = Clock::now() + time;
  while (!is_stopping() && time.count() != 0 && Clock::now() < end) {
    std::this_thread::sleep_for(std::min<Clock::duration>(end - Clock::now(), microseconds(2000)));
  }
  return !is_stopping();
}

void SimQueue::run(const SimWork& work) noexcept {
  // A device that is lost does nothing, but passes events, so that others do not wait for it.
  if (const auto* record = std::get_if<SimRecord>(&work.what)) {
    tell(*record->mark);
  } else if (const auto* wait = std::get_if<SimWait>(&work.what)) {
    wait_for(*wait->mark);
  } else if (gate_->is_lost(device_)) {
    return;
  } else if (!work.is_legal()) {
    gate_->lose(device_, sim_error::illegal_address);
  } else if (const auto* copy = std::get_if<SimCopy>(&work.what)) {
    ebb::run(*copy);
  } else if (const auto* fill = std::get_if<SimFill>(&work.what)) {
    ebb::run(*fill);
  } else if (const auto* call = std::get_if<SimHostCall>(&work.what)) {
    const HostFunctionScope scope;
    call->function(call->context);
  }
}

void SimQueue::wait_for(const SimMark& mark) const noexcept {
  Backoff backoff;
  while (!mark.is_done.load(std::memory_order_acquire) && !is_stopping()) {
    backoff.wait();
  }
}

// The times of a stream's marks never go back, whatever becomes of its lag.
void SimQueue::tell(SimMark& mark) noexcept {
  const std::int64_t lag_us = pace_.lag_us.load(std::memory_order_relaxed);
  told_last_ = std::max(told_last_, lag_us == 0 ? 0 : now_ns() + lag_us * 1000);
  mark.told_from.store(told_last_, std::memory_order_relaxed);
  mark.is_done.store(true, std::memory_order_release);
}

void SimQueue::stop(Clock::time_point deadline) noexcept {
  is_stopping_.store(true, std::memory_order_relaxed);
  ::sem_post(&available_);
  if (!thread_.joinable()) {
    return;
  }
  Backoff backoff;
  while (!is_over() && Clock::now() < deadline) {
    backoff.wait();
  }
  if (is_over()) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace ebb::inline v0
