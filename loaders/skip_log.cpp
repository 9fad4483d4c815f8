// SPDX-License-Identifier: Apache-2.0
// The list of skipped samples, as a run and its checkpoints need it.
#include "skip_log.h"

#include <utility>

namespace ebb::inline v0::detail {

bool SkipLog::add(SkippedSample sample) {
  const std::lock_guard lock(mutex_);
  if (!indices_.insert(sample.index).second) {
    return false;
  }
  found_.push_back(std::move(sample));
  size_.store(indices_.size(), std::memory_order_release);
  return true;
}

void SkipLog::restore(const std::vector<std::uint64_t>& indices) {
  const std::lock_guard lock(mutex_);
  known_ = indices;
  indices_ = {indices.begin(), indices.end()};
  found_.clear();
  size_.store(indices_.size(), std::memory_order_release);
}

bool SkipLog::contains(std::uint64_t index) const {
  if (size() == 0) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  return indices_.contains(index);
}

std::vector<SkippedSample> SkipLog::list() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

std::vector<std::uint64_t> SkipLog::before(std::uint64_t epoch, std::uint64_t seq) const {
  const std::lock_guard lock(mutex_);
  std::set<std::uint64_t> indices(known_.begin(), known_.end());
  for (const SkippedSample& it : found_) {
    if (it.epoch < epoch || (it.epoch == epoch && it.seq < seq)) {
      indices.insert(it.index);
    }
  }
  return {indices.begin(), indices.end()};
}

}  // namespace ebb::inline v0::detail
