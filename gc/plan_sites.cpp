// SPDX-License-Identifier: Apache-2.0
#include "plan_sites.h"

#include <algorithm>
#include <new>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

// A set that has its place's name for itself, since it was loaded before the program came there.
struct NamedSet {
  NamedSet(const SavedPlans& saved, const PlanSetOptions& options)
      : file(saved.file), plans(options, {file.c_str(), saved.line}) {}

  const std::string file;
  PlanSet plans;
};

std::shared_ptr<PlanSet> make_named(const SavedPlans& saved, const PlanSetOptions& options) {
  const auto named = std::make_shared<NamedSet>(saved, options);
  return {named, &named->plans};
}

// Where the plans of a place are among the loaded ones, or where they would be.
auto find_of(std::vector<std::shared_ptr<PlanSet>>& sets, const Place& place) {
  return std::find_if(sets.begin(), sets.end(),
                      [&](const auto& set) { return set->place().is_same_as(place); });
}

}  // namespace

const PlanSites::Site* PlanSites::known(const Place& place) const noexcept {
  const auto find = [this](const auto& is_it) -> const Site* {
    const auto site = std::find_if(sites_.begin(), sites_.end(), is_it);
    return site == sites_.end() ? nullptr : &*site;
  };
  const Site* const exact = find([&](const Site& site) { return site.place == place; });
  return exact != nullptr ? exact
                          : find([&](const Site& site) { return site.place.is_same_as(place); });
}

const std::shared_ptr<PlanSet>* PlanSites::find_slowly(const Place& place) noexcept {
  const std::lock_guard lock(mutex_);
  const Site* site = known(place);
  if (site == nullptr || site->place != place) {
    try {
      sites_.push_back(site == nullptr ? Site{place, std::make_shared<PlanSet>(options_, place)}
                                       : Site{place, site->plans, true});
      site = &sites_.back();
    } catch (const std::bad_alloc&) {
      if (site == nullptr) {
        return nullptr;
      }
    }
  }
  last_.store(site, std::memory_order_release);
  return &site->plans;
}

std::vector<std::shared_ptr<PlanSet>> PlanSites::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<PlanSet>> sets;
  for (const Site& site : sites_) {
    if (!site.is_alias) {
      sets.push_back(site.plans);
    }
  }
  return sets;
}

std::string PlanSites::save() const {
  std::string text;
  for (const std::shared_ptr<PlanSet>& set : all()) {
    if (!set->plans().empty()) {
      text += set->save();
    }
  }
  return text;
}

PlanSites::Loaded PlanSites::read(std::vector<SavedPlans> parts) const {
  Loaded loaded{.parts = std::move(parts), .sets = {}};
  for (const SavedPlans& part : loaded.parts) {
    auto its = find_of(loaded.sets, {part.file.c_str(), part.line});
    if (its == loaded.sets.end()) {
      its = loaded.sets.insert(its, make_named(part, options_));
    }
    (*its)->load(part.text, part.first_line);
  }
  return loaded;
}

// Those of places that have a set already are read again into that.
void PlanSites::add(Loaded loaded) {
  {
    const std::lock_guard lock(mutex_);
    for (std::shared_ptr<PlanSet>& set : loaded.sets) {
      if (const Site* const site = known(set->place())) {
        set = site->plans;
      } else {
        sites_.push_back({set->place(), std::exchange(set, nullptr)});
      }
    }
  }
  std::erase(loaded.sets, nullptr);
  for (const SavedPlans& part : loaded.parts) {
    const auto its = find_of(loaded.sets, {part.file.c_str(), part.line});
    if (its != loaded.sets.end()) {
      (*its)->load(part.text, part.first_line);
    }
  }
}

}  // namespace ebb::inline v0::detail
