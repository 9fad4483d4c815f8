// SPDX-License-Identifier: Apache-2.0
// What is alive right now, by place. [gc.report]
#include "domain_impl.h"
#include "stragglers.h"

#include <ebb/gc/live.h>

namespace ebb::inline v0 {

std::vector<StragglerPlace> live_storages(const Owner& owner) {
  return owner.is_open() && owner.kind() != OwnerKind::loader
             ? detail::find_stragglers(*owner.record())
             : std::vector<StragglerPlace>{};
}

std::vector<StragglerPlace> live_storages(const Domain& domain) {
  return detail::find_live(domain.impl());
}

std::string to_string(const std::vector<StragglerPlace>& places) {
  if (places.empty()) {
    return "nothing alive";
  }
  std::string text = detail::describe_total(places) + " alive";
  detail::append_places(text, places);
  return text;
}

}  // namespace ebb::inline v0
