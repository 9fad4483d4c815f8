// SPDX-License-Identifier: Apache-2.0
#include "plan_sites.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace ebb::inline v0::detail {

const std::shared_ptr<PlanSet>* PlanSites::find_slowly(const Place& place) noexcept {
  const std::lock_guard lock(mutex_);
  auto site = std::find_if(sites_.begin(), sites_.end(),
                           [&place](const Site& s) { return s.place.is_same_as(place); });
  if (site == sites_.end()) {
    try {
      sites_.push_back({place, std::make_shared<PlanSet>(PlanSetOptions{}, place)});
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    site = std::prev(sites_.end());
  }
  last_.store(&*site, std::memory_order_release);
  return &site->plans;
}

std::vector<std::shared_ptr<PlanSet>> PlanSites::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<PlanSet>> sets;
  for (const Site& site : sites_) {
    sets.push_back(site.plans);
  }
  return sets;
}

}  // namespace ebb::inline v0::detail
