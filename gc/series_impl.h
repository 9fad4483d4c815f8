// SPDX-License-Identifier: Apache-2.0
// What the iterations of one loop share: which places straggle, and stored errors. Private to gc.
#pragma once

#include "owner_record.h"

#include <ebb/gc/close.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

namespace ebb::inline v0 {

class CloseSeries::Impl {
 public:
  Impl(std::shared_ptr<Domain> its_domain, CloseOptions its_options)
      : domain(std::move(its_domain)), options(std::move(its_options)) {}

  // Returns whether every one of places straggled at its last close: such a place had its
  // deadline already. [gc.close]
  bool all_known(const std::vector<StragglerPlace>& places);
  // Notes what straggled at a close: fills in the streaks, forgets places that closed clean, and
  // returns whether something is worth a line in the log: a place's first time after warmup, and
  // once more when it straggles for the third time running. [gc.report]
  bool note(std::vector<StragglerPlace>& places, bool after_warmup);
  void note_clean() noexcept;

  const std::shared_ptr<Domain> domain;
  const CloseOptions options;

  // Relaxed: figures, and a hint that saves the lock in a clean close.
  std::atomic<std::uint64_t> closed{0};
  std::atomic<std::uint64_t> stragglers{0};
  std::atomic<bool> has_history{false};
  std::atomic<bool> has_stored{false};
  // The record of the last clean close, for the next open. Acquire and release: whoever takes it
  // sees what the thread that put it back did to it.
  std::atomic<OwnerRecord*> spare{nullptr};

  // Guards stored and the history.
  std::mutex mutex;
  std::exception_ptr stored;

 private:
  struct Known {
    std::string file;
    std::uint32_t line;
    std::uint32_t streak;
    bool logged;
    bool escalated;
  };
  Known* find(const Place& place);

  std::vector<Known> history_;
};

}  // namespace ebb::inline v0
