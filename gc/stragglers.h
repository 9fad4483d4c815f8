// SPDX-License-Identifier: Apache-2.0
// Finding what an owner still holds, by place, and moving it to the runtime. Private to gc.
// Works by scanning the cells of a pool: only when something is alive, never in a clean close.
#pragma once

#include "owner_record.h"

#include <ebb/alloc/pool.h>
#include <ebb/gc/report.h>

#include <string>
#include <vector>

namespace ebb::inline v0::detail {

// Returns the live storages charged to record, grouped by place, the most bytes first. All of these
// find nothing once the runtime has ended, or the loader whose pool it is.
std::vector<StragglerPlace> find_stragglers(const OwnerRecord& record);

// Moves every live storage of record to the runtime's ownership and counts it as adopted. Returns
// how many it moved. Safe against releases and transfers at the same time. [gc.policy]
std::uint64_t adopt_stragglers(OwnerRecord& record) noexcept;

// Returns "3 storages, 1.5 MiB, outlive the runtime" and the places.
std::string describe_live(const OwnerRecord& record);

// Returns one line for each of the five places that hold most bytes of the record's pool: what a
// refused request tells. [alloc.resource]
std::string describe_holders(const OwnerRecord& record);
// Throws OutOfMemory with what heap and the holders say. Takes the replace mutex.
[[noreturn, gnu::cold]] void fail_for_memory(const char* function, const OwnerRecord& record,
                                             const Heap& heap, Bytes asked);

// Appends one line per place to text.
void append_places(std::string& text, const std::vector<StragglerPlace>& places);

}  // namespace ebb::inline v0::detail
