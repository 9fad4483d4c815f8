// SPDX-License-Identifier: Apache-2.0
// A source that stops a thread where it commits pages, until the test lets it go on: what happens
// in the middle of a request then happens for certain. Any thread.
#pragma once

#include <ebb/alloc/source.h>

#include <condition_variable>
#include <mutex>

namespace ebb::test {

class PausingSource final : public Source {
 public:
  // The next commit of the calling thread stops.
  void pause_at_next_commit() noexcept { armed_ = true; }
  // Waits until it has.
  void wait_until_paused() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return paused_; });
  }
  void go_on() {
    const std::lock_guard lock(mutex_);
    paused_ = false;
    changed_.notify_all();
  }

  Range reserve(Bytes bytes) noexcept override { return inner_.reserve(bytes); }
  void release(Range range) noexcept override { inner_.release(range); }
  bool commit(Range range) noexcept override {
    if (armed_) {
      armed_ = false;
      std::unique_lock lock(mutex_);
      paused_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !paused_; });
    }
    return inner_.commit(range);
  }
  void decommit(Range range) noexcept override { inner_.decommit(range); }
  Bytes page_size() const noexcept override { return inner_.page_size(); }
  Device device() const noexcept override { return inner_.device(); }
  const char* name() const noexcept override { return "pausing"; }

 private:
  Source& inner_ = system_source();
  std::mutex mutex_;  // guards paused_
  std::condition_variable changed_;
  bool paused_ = false;
  static inline thread_local bool armed_ = false;
};

}  // namespace ebb::test
