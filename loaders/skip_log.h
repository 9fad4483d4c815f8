// SPDX-License-Identifier: Apache-2.0
// Which samples of a run are known not to load. Thread-safe. [load.error]
#pragma once

#include <ebb/loaders/loader.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

namespace ebb::inline v0::detail {

class SkipLog {
 public:
  // Returns whether it is new. Throws std::bad_alloc.
  bool add(SkippedSample sample);
  void restore(const std::vector<std::uint64_t>& indices);
  bool contains(std::uint64_t index) const;
  std::uint64_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  std::vector<SkippedSample> list() const;
  // Returns those that were found out before a batch, lowest first.
  std::vector<std::uint64_t> before(std::uint64_t epoch, std::uint64_t seq) const;

 private:
  mutable std::mutex mutex_;  // guards the next three
  std::vector<SkippedSample> found_;
  std::set<std::uint64_t> indices_;
  std::vector<std::uint64_t> known_;  // from before this run
  // Release, so that who sees it grow finds the index; most look at nothing else.
  std::atomic<std::uint64_t> size_{0};
};

}  // namespace ebb::inline v0::detail
