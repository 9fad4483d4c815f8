// SPDX-License-Identifier: Apache-2.0
// Splitting a loop: the caller and up to concurrency - 1 helper tasks take ranges in turn.
#include <ebb/alloc/error.h>
#include <ebb/gc/outside_plan.h>
#include <ebb/runtime/parallel.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>

namespace ebb::inline v0::detail {
namespace {

constexpr std::int64_t ranges_per_thread = 4;
constexpr unsigned max_helpers = 63;
// About as long as a sleeping thread takes to wake: shorter waits are spun through.
constexpr int spins_before_sleep = 2000;

// One call of parallel_for. Lives on the caller's stack until every helper has left it.
class Split {
 public:
  Split(std::int64_t count, std::int64_t range, RangeBody call, void* body)
      : count_(count), range_(range), call_(call), body_(body) {}

  // Takes ranges until there is none. Any thread.
  void work() noexcept {
    for (;;) {
      // Relaxed: what the bodies write is published by leave() and the queue's locks.
      const std::int64_t begin = next_.fetch_add(range_, std::memory_order_relaxed);
      if (begin >= count_) {
        return;
      }
      try {
        call_(body_, begin, std::min(begin + range_, count_));
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  void enter() noexcept { started_.fetch_add(1, std::memory_order_relaxed); }
  // The helper's last touch: the caller leaves only after taking the lock once more.
  void leave() noexcept {
    const std::lock_guard lock(mutex_);
    // Release: pairs with the acquire of the caller that spins.
    if (pending_.fetch_sub(1, std::memory_order_release) == 1) {
      done_.notify_all();
    }
  }

  void set_pending(unsigned helpers) noexcept {
    pending_.store(helpers, std::memory_order_relaxed);
  }
  void drop_pending(unsigned helpers) noexcept {
    const std::lock_guard lock(mutex_);
    pending_.fetch_sub(helpers, std::memory_order_relaxed);
  }

  // Returns when no helper is left. Helpers that no worker has taken yet are run here. There is
  // no deadline: the helpers refer to this frame, and end with the bodies they run.
  void wait(Executor& executor, unsigned helpers) noexcept {
    int spins = 0;
    while (pending_.load(std::memory_order_acquire) != 0) {
      if (started_.load(std::memory_order_relaxed) < helpers && executor.run_one()) {
        continue;
      }
      if (++spins >= spins_before_sleep) {
        break;
      }
    }
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_.load(std::memory_order_acquire) == 0; });
  }

  void rethrow_error() const {
    if (error_ != nullptr) {
      std::rethrow_exception(error_);
    }
  }

 private:
  void fail(std::exception_ptr error) noexcept {
    next_.store(count_, std::memory_order_relaxed);  // the ranges left are not begun
    const std::lock_guard lock(mutex_);
    if (error_ == nullptr) {
      error_ = std::move(error);
    }
  }

  const std::int64_t count_;
  const std::int64_t range_;
  const RangeBody call_;
  void* const body_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<unsigned> started_{0};
  std::atomic<unsigned> pending_{0};
  std::mutex mutex_;  // guards error_; done_ is notified under it
  std::condition_variable done_;
  std::exception_ptr error_;
};

class Helper final : public Task {
 public:
  explicit Helper(Split& split) noexcept : split_(split) {}

 private:
  void run() noexcept override {
    split_.enter();
    split_.work();
    split_.leave();
  }
  Split& split_;
};

// Helpers made in place, as many as are needed.
class Helpers {
 public:
  Helpers(Split& split, unsigned count) : count_(count) {
    for (unsigned i = 0; i < count; ++i) {
      new (&memory_[i * sizeof(Helper)]) Helper(split);
    }
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  Helpers(Helpers&&) = delete;
  Helpers& operator=(Helpers&&) = delete;
  ~Helpers() {
    for (unsigned i = 0; i < count_; ++i) {
      (*this)[i].~Helper();
    }
  }
  Helper& operator[](unsigned i) noexcept {
    return *std::launder(reinterpret_cast<Helper*>(&memory_[i * sizeof(Helper)]));
  }

 private:
  alignas(Helper) std::array<std::byte, max_helpers * sizeof(Helper)> memory_;
  unsigned count_;
};

// Submits count helpers; when the executor refuses, goes on with those it took. Throws ForkedError,
// and then it took none.
unsigned submit_all(Executor& executor, Helpers& helpers, unsigned count) {
  unsigned submitted = 0;
  try {
    for (; submitted < count; ++submitted) {
      executor.submit(helpers[submitted]);
    }
  } catch (const ForkedError&) {
    throw;
  } catch (...) {  // the caller does the work of the helpers that are missing
  }
  return submitted;
}

}  // namespace

void parallel_for(Executor& executor, std::int64_t count, std::int64_t grain, RangeBody call,
                  void* body) {
  if (count < 0 || grain < 1) {
    throw std::invalid_argument("[parallel_for] count must not be negative and grain at least 1");
  }
  const std::int64_t threads = executor.concurrency();
  const std::int64_t most = threads * ranges_per_thread;
  const std::int64_t range = std::max(grain, (count + most - 1) / most);
  const std::int64_t ranges = (count + range - 1) / std::max<std::int64_t>(range, 1);
  Split split(count, range, call, body);
  const auto wanted = static_cast<unsigned>(
      std::clamp<std::int64_t>(std::min(threads, ranges) - 1, 0, max_helpers));
  if (wanted == 0) {
    const OutsidePlan outside;
    split.work();
    split.rethrow_error();
    return;
  }
  Helpers helpers(split, wanted);
  split.set_pending(wanted);
  const unsigned submitted = submit_all(executor, helpers, wanted);
  split.drop_pending(wanted - submitted);
  {
    const OutsidePlan outside;
    split.work();
    split.wait(executor, submitted);
  }
  note_join();
  split.rethrow_error();
}

}  // namespace ebb::inline v0::detail
