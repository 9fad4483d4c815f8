// SPDX-License-Identifier: Apache-2.0
// The three ways in which loader and step work meet on one thread, as programs that count the
// storages charged to the wrong owner. [gc.owner]
#pragma once

#include <ebb/runtime/interop/tbb.h>
#include <ebb/runtime/loop.h>
#include <ebb/runtime/parallel.h>

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

namespace ebb::test {

// A runtime whose step and loader work share one arena, and a loader's owner.
struct SharedArena {
  tbb::task_arena arena{2};
  std::unique_ptr<Executor> executor = borrow_arena(arena);
  Runtime rt{{.step_executor = executor.get(),
              .load_executor = executor.get(),
              .log = [](LogLevel, std::string_view) {}}};
  Pool pool = rt.domain()->make_pool("loader", Bytes{0});
  Owner loader = rt.domain()->open_loader_owner(pool);
  Loop loop{rt};

  SharedArena() = default;
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;
  SharedArena(SharedArena&&) = delete;
  SharedArena& operator=(SharedArena&&) = delete;
  ~SharedArena() { rt.domain()->close_loader_owner(loader); }
};

// Makes a storage of the current owner and counts it when that is not the expected one.
inline void make_and_check(Owner expected, std::atomic<int>& mistagged) {
  const Tensor made = empty({16});
  mistagged += made.storage().owner_record() == expected.record() ? 0 : 1;
}

// A task of the loader's.
class LoaderTask final : public Task {
 public:
  LoaderTask(Owner loader, std::atomic<int>& mistagged, std::atomic<int>& done)
      : loader_(loader), mistagged_(&mistagged), done_(&done) {}

 private:
  void run() noexcept override {
    const OwnerScope scope(loader_);
    make_and_check(loader_, *mistagged_);
    done_->fetch_add(1);
  }
  Owner loader_;
  std::atomic<int>* mistagged_;
  std::atomic<int>* done_;
};

// (a) One arena, many loader tasks to steal: a thread that waits in the iteration runs them.
inline int tag_while_stealing(SharedArena& shared, int loader_tasks) {
  std::atomic<int> mistagged{0};
  std::atomic<int> done{0};
  std::deque<LoaderTask> tasks;
  Iteration it(shared.loop);
  for (int i = 0; i < loader_tasks; ++i) {
    const OwnerScope scope(shared.loader);
    shared.executor->submit(tasks.emplace_back(shared.loader, mistagged, done));
  }
  while (done < loader_tasks) {
    parallel_for(*shared.executor, 8, 1,
                 [&](std::int64_t, std::int64_t) { make_and_check(it.owner(), mistagged); });
    shared.executor->run_one();  // as a waiting thread does
    make_and_check(it.owner(), mistagged);
  }
  return mistagged;
}

// (b) A worker that ran a loader task comes to step work of the host's: it has no owner of ours
// there, and carried bodies have the iteration's. Returns -1 when no worker made the move.
inline int tag_after_moving(SharedArena& shared) {
  std::atomic<int> mistagged{0};
  std::atomic<std::thread::id> worker{};
  std::atomic<int> done{0};
  class NotingTask final : public Task {
   public:
    NotingTask(Owner loader, std::atomic<std::thread::id>& id, std::atomic<int>& done)
        : loader_(loader), id_(&id), done_(&done) {}

   private:
    void run() noexcept override {
      const OwnerScope scope(loader_);
      const Tensor made = empty({16});
      *id_ = std::this_thread::get_id();
      *done_ = 1;
    }
    Owner loader_;
    std::atomic<std::thread::id>* id_;
    std::atomic<int>* done_;
  } task(shared.loader, worker, done);
  {
    const OwnerScope scope(shared.loader);
    shared.executor->submit(task);
  }
  while (done == 0) {
    std::this_thread::yield();
  }
  Iteration it(shared.loop);
  tbb::task_arena step_arena(2);
  std::atomic<bool> moved{false};
  const auto step_work = carry([&] { make_and_check(it.owner(), mistagged); });
  // The main thread holds its own piece until the worker has come for the other one.
  step_arena.execute([&] {
    tbb::parallel_for(0, 2, [&](int) {
      if (std::this_thread::get_id() == worker.load()) {
        mistagged += Owner::current_or_none() ? 1 : 0;
        step_work();
        moved = true;
        return;
      }
      const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
      while (!moved && std::chrono::steady_clock::now() < limit) {
        std::this_thread::yield();
      }
    });
  });
  return moved ? mistagged.load() : -1;
}

// (c) Step work nested in a loader task: what the loader makes after it is the loader's again.
inline int tag_when_nested(SharedArena& shared) {
  std::atomic<int> mistagged{0};
  std::atomic<int> done{0};
  Iteration it(shared.loop);
  class NestingTask final : public Task {
   public:
    NestingTask(SharedArena& shared, Owner step, std::atomic<int>& mistagged,
                std::atomic<int>& done)
        : shared_(&shared), step_(step), mistagged_(&mistagged), done_(&done) {}

   private:
    void run() noexcept override {
      const OwnerScope scope(shared_->loader);
      make_and_check(shared_->loader, *mistagged_);
      {
        const OwnerScope step(step_);
        parallel_for(*shared_->executor, 4, 1,
                     [this](std::int64_t, std::int64_t) { make_and_check(step_, *mistagged_); });
      }
      make_and_check(shared_->loader, *mistagged_);
      *done_ = 1;
    }
    SharedArena* shared_;
    Owner step_;
    std::atomic<int>* mistagged_;
    std::atomic<int>* done_;
  } task(shared, it.owner(), mistagged, done);
  {
    const OwnerScope scope(shared.loader);
    shared.executor->submit(task);
  }
  while (done == 0) {
    shared.executor->run_one();
  }
  make_and_check(it.owner(), mistagged);
  return mistagged;
}

}  // namespace ebb::test
