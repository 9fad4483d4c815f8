// SPDX-License-Identifier: Apache-2.0
// An executor over std::jthread workers: the one that ThreadSanitizer can see through. [rt.exec]
#include "task_queue.h"

#include <ebb/alloc/fork.h>
#include <ebb/runtime/executor.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

namespace ebb::inline v0 {
namespace {

// The queue and its threads. In a forked child they are left as they are: the threads are not
// there, and one of them may have held the mutex.
class Workers {
 public:
  Workers(std::string name, unsigned threads)
      : name_(std::move(name)), workers_wanted_(threads > 0 ? threads - 1 : 0) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  Workers(Workers&&) = delete;
  Workers& operator=(Workers&&) = delete;
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    available_.notify_all();
    workers_.clear();  // joins
    while (run_one()) {
    }
  }

  unsigned concurrency() const noexcept { return workers_wanted_ + 1; }

  void submit(Task& task) {
    task.bind_to_current_owner();
    {
      const std::lock_guard lock(mutex_);
      start_workers();
      queue_.push(task);
    }
    available_.notify_one();
  }

  bool run_one() noexcept {
    Task* task = nullptr;
    {
      const std::lock_guard lock(mutex_);
      task = queue_.pop_newest();
    }
    if (task == nullptr) {
      return false;
    }
    task->execute();
    return true;
  }

 private:
  // Called with mutex_ held. Throws std::system_error when the system refuses a thread; those that
  // were made work on, and the next submit tries again.
  void start_workers() {
    while (!stopping_ && workers_.size() < workers_wanted_) {
      workers_.emplace_back([this, number = workers_.size()] { work(number); });
    }
  }

  void work(std::size_t number) noexcept {
    const std::string thread_name = (name_ + "-" + std::to_string(number)).substr(0, 15);
    pthread_setname_np(pthread_self(), thread_name.c_str());
    std::unique_lock lock(mutex_);
    for (;;) {
      if (Task* const task = queue_.pop_oldest()) {
        lock.unlock();
        task->execute();
        lock.lock();
      } else if (stopping_) {
        return;
      } else {
        // No deadline: an idle worker waits for work or for the end, and nobody waits for it.
        available_.wait(lock);
      }
    }
  }

  const std::string name_;
  const unsigned workers_wanted_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable available_;
  detail::TaskQueue queue_;
  bool stopping_ = false;
  std::vector<std::jthread> workers_;
};

class JthreadExecutor final : public Executor {
 public:
  JthreadExecutor(std::string name, unsigned threads)
      : workers_(std::make_unique<Workers>(std::move(name), threads)) {}

  unsigned concurrency() const noexcept override { return workers_->concurrency(); }
  void submit(Task& task) override {
    workers_.mark().require_own_process("Executor::submit");
    workers_->submit(task);
  }
  bool run_one() noexcept override { return !workers_.mark().in_child() && workers_->run_one(); }

 private:
  detail::OwnedHere<Workers> workers_;
};

}  // namespace

std::unique_ptr<Executor> make_jthread_executor(std::string name, unsigned threads) {
  return std::make_unique<JthreadExecutor>(std::move(name), threads);
}

}  // namespace ebb::inline v0
