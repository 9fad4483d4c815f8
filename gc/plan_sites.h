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
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0::detail {

class PlanSites {
 public:
  explicit PlanSites(PlanSetOptions options = {}) : options_(options) {}

  // Returns the set of a place, made when it is first asked for, or null without memory. Without a
  // lock where the place is the last one's again. Lives as long as this.
  const std::shared_ptr<PlanSet>* find(const Place& place) noexcept {
    const Site* const last = last_.load(std::memory_order_acquire);
    return last != nullptr && last->place == place ? &last->plans : find_slowly(place);
  }
  // Returns all there are, each once, in the order in which they came to be. Throws std::bad_alloc.
  std::vector<std::shared_ptr<PlanSet>> all() const;

  // Returns the plans of all sets that have any, as split_plans() takes them. Throws as
  // PlanSet::save does.
  std::string save() const;

  // Saved plans that have been read, into sets of their own. Views of the text are in it.
  struct Loaded {
    std::vector<SavedPlans> parts;
    std::vector<std::shared_ptr<PlanSet>> sets;  // one for each place
  };
  // Throws std::invalid_argument as PlanSet::load does, of sets with this one's options.
  Loaded read(std::vector<SavedPlans> parts) const;
  // Adds them to the sets of their places, which are made where there are none yet. Throws
  // std::bad_alloc.
  void add(Loaded loaded);

 private:
  struct Site {
    const Place place;
    std::shared_ptr<PlanSet> plans;
    // The set is that of an earlier site, whose place has the file's name elsewhere: another one
    // that the compiler has, or that of a saved set.
    bool is_alias = false;
  };

  const std::shared_ptr<PlanSet>* find_slowly(const Place& place) noexcept;
  // With the lock held. Null: none.
  const Site* known(const Place& place) const noexcept;

  const PlanSetOptions options_;  // of each set that is made here
  // Release and acquire: who reads it sees the site whole.
  std::atomic<const Site*> last_{nullptr};
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Site> sites_;    // which stay where they are
};

}  // namespace ebb::inline v0::detail
