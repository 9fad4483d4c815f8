// SPDX-License-Identifier: Apache-2.0
// The plans of a loop, one set for each place where its iterations are opened. Private to gc.
// Thread-safe. [alloc.replay]
#pragma once

#include <ebb/alloc/place.h>
#include <ebb/alloc/replay.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace ebb::inline v0::detail {

class PlanSites {
 public:
  // Returns the set of a place, made when it is first asked for, or null without memory. Without a
  // lock where the place is the last one's again. Lives as long as this.
  const std::shared_ptr<PlanSet>* find(const Place& place) noexcept {
    const Site* const last = last_.load(std::memory_order_acquire);
    return last != nullptr && last->place == place ? &last->plans : find_slowly(place);
  }
  // Returns all there are, in the order of their first iterations. Throws std::bad_alloc.
  std::vector<std::shared_ptr<PlanSet>> all() const;

 private:
  struct Site {
    const Place place;
    std::shared_ptr<PlanSet> plans;
  };

  const std::shared_ptr<PlanSet>* find_slowly(const Place& place) noexcept;

  // Release and acquire: who reads it sees the site whole.
  std::atomic<const Site*> last_{nullptr};
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Site> sites_;    // which stay where they are
};

}  // namespace ebb::inline v0::detail
