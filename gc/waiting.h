// SPDX-License-Identifier: Apache-2.0
// What waits for a record share. Private to gc; belongs to the thread that waits. [gc.close]
#pragma once

#include "owner_record.h"

#include <ebb/gc/clock.h>

#include <chrono>

namespace ebb::inline v0::detail {

// While one lives, whoever counts down notifies record.changed.
class Waiting {
 public:
  explicit Waiting(OwnerRecord& record) noexcept : record_(record) {
    record_.waiting.fetch_add(1, std::memory_order_seq_cst);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  Waiting(Waiting&&) = delete;
  Waiting& operator=(Waiting&&) = delete;
  ~Waiting() { record_.waiting.fetch_sub(1, std::memory_order_seq_cst); }

 private:
  OwnerRecord& record_;
};

// Says when a long wait is to log a line: every few seconds, so that a hang says what it hangs on.
class SlowNotice {
 public:
  explicit SlowNotice(TimePoint start) noexcept : next_(start + period) {}

  TimePoint next() const noexcept { return next_; }
  bool is_due(TimePoint now) noexcept {
    if (now < next_) {
      return false;
    }
    next_ = now + period;
    return true;
  }

 private:
  static constexpr std::chrono::seconds period{5};
  TimePoint next_;
};

}  // namespace ebb::inline v0::detail
