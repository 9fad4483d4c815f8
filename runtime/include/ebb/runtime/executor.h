// SPDX-License-Identifier: Apache-2.0
// Where tasks run: TBB task arenas, std::jthread workers, or the host's own threads. Used by the
// runtime for step work and by loaders. Thread-safe.
#pragma once

#include <ebb/gc/job.h>
#include <ebb/gc/log.h>

#include <memory>
#include <string>

namespace ebb::inline v0 {

// One piece of work. The caller owns it and keeps it alive until run() has been entered; run may
// end its life. A task carries the owner that submitted it and is a job of it. [rt.exec]
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  Task(Task&&) = delete;
  Task& operator=(Task&&) = delete;
  virtual ~Task() = default;

  // For executors: binds the task to the current owner; called once by submit, before queueing.
  void bind_to_current_owner() noexcept { job_ = Job(Owner::current_or_none()); }
  // For executors: runs the task under its owner and restores what the thread had before. Does
  // not touch the task after run().
  void execute() noexcept;

  // For the queue of the executor that holds the task.
  Task* next = nullptr;
  Task* previous = nullptr;

 private:
  virtual void run() noexcept = 0;

  Job job_;
};

// The interface a host implements to bring its own threads. submit must call
// task.bind_to_current_owner() before queueing, and task.execute() once, on any thread.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  Executor(Executor&&) = delete;
  Executor& operator=(Executor&&) = delete;
  virtual ~Executor() = default;

  // Returns how many threads may run tasks at once, a waiting caller included. At least 1.
  virtual unsigned concurrency() const noexcept = 0;
  // Queues task. Throws when it cannot; then the task will not run.
  virtual void submit(Task& task) = 0;
  // Runs one queued task of this executor on the calling thread, the newest first. Returns false
  // when there was none. Called by threads that wait for tasks.
  virtual bool run_one() noexcept = 0;
};

// threads - 1 workers, since a waiting caller runs tasks too. They are made at the first submit,
// are named NAME-0 and so on, and are joined by the destructor, which runs what is still queued. In
// a forked child ebb's executors throw ForkedError from submit and run nothing. [rt.fork]
std::unique_ptr<Executor> make_jthread_executor(std::string name, unsigned threads);

// A TBB task arena of its own: threads - 1 of TBB's workers and the waiting caller. Clamped to what
// the process's global_control allows; log says so when that is less than asked. [rt.global]
std::unique_ptr<Executor> make_tbb_executor(std::string name, unsigned threads, const LogHook& log);

}  // namespace ebb::inline v0
