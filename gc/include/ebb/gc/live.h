// SPDX-License-Identifier: Apache-2.0
// What is alive right now, by place: for tests and for looking into a running program. Any thread;
// walks over cells, so not for every step of a loop. [gc.report]
#pragma once

#include <ebb/gc/domain.h>
#include <ebb/gc/owner.h>
#include <ebb/gc/report.h>

#include <vector>

namespace ebb::inline v0 {

// Returns the live storages charged to owner, grouped by place, the most bytes first; none when it
// has closed. Loaders' storages are never listed. Throws std::bad_alloc.
std::vector<StragglerPlace> live_storages(const Owner& owner);

// Returns all live storages of the runtime's pools, whoever is charged; none when it has ended.
std::vector<StragglerPlace> live_storages(const Domain& domain);

// Returns "3 storages (1.5 MiB) alive" and a line for each place; "nothing alive" when empty.
std::string to_string(const std::vector<StragglerPlace>& places);

}  // namespace ebb::inline v0
