// SPDX-License-Identifier: Apache-2.0
// The queue of tasks behind ebb's own executors. Private to runtime. Not thread-safe: each
// executor guards it with its own mutex.
#pragma once

#include <ebb/runtime/executor.h>

namespace ebb::inline v0::detail {

// Intrusive and doubly linked: workers take the oldest task, a waiting caller the newest, which
// most likely is its own.
class TaskQueue {
 public:
  bool empty() const noexcept { return oldest_ == nullptr; }

  void push(Task& task) noexcept {
    task.next = nullptr;
    task.previous = newest_;
    (newest_ != nullptr ? newest_->next : oldest_) = &task;
    newest_ = &task;
  }

  Task* pop_oldest() noexcept {
    Task* const task = oldest_;
    if (task != nullptr) {
      oldest_ = task->next;
      (oldest_ != nullptr ? oldest_->previous : newest_) = nullptr;
    }
    return task;
  }

  Task* pop_newest() noexcept {
    Task* const task = newest_;
    if (task != nullptr) {
      newest_ = task->previous;
      (newest_ != nullptr ? newest_->next : oldest_) = nullptr;
    }
    return task;
  }

  // Takes task out if it is in the queue; returns whether it was.
  bool remove(Task& task) noexcept {
    for (Task* t = newest_; t != nullptr; t = t->previous) {
      if (t == &task) {
        (t->previous != nullptr ? t->previous->next : oldest_) = t->next;
        (t->next != nullptr ? t->next->previous : newest_) = t->previous;
        return true;
      }
    }
    return false;
  }

 private:
  Task* oldest_ = nullptr;
  Task* newest_ = nullptr;
};

}  // namespace ebb::inline v0::detail
