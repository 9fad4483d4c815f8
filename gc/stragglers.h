// SPDX-License-Identifier: Apache-2.0
// Finding what an owner still holds, by place, and moving it to the runtime. Private to gc.
// Works by scanning cells: only when something is alive, never in a clean close.
#pragma once

#include "owner_record.h"

#include <ebb/gc/close.h>
#include <ebb/gc/report.h>

#include <string>
#include <vector>

namespace ebb::inline v0::detail {

// Puts the live storages charged to record into its tallies, by place. Throws std::bad_alloc.
void tally_stragglers(OwnerRecord& record);

// Returns the same as a report tells it, the most bytes first. All of these find nothing once the
// runtime has ended, or the loader whose pool it is.
std::vector<StragglerPlace> find_stragglers(const OwnerRecord& record);

// Fills in which stragglers of earlier iterations are still alive. Walks over all cells.
void find_earlier(const OwnerRecord& record, std::vector<StragglerPlace>& places);

// What was moved to the runtime.
struct Adopted {
  std::uint64_t count = 0;
  Bytes bytes;
  std::uint64_t revoked_count = 0;
  Bytes revoked_bytes;
};

// Moves every live storage of record to the runtime's ownership and counts it as adopted; by
// Policy::revoke gives up the memory of those that allow it. Safe against releases and transfers at
// the same time. [gc.policy]
Adopted adopt_stragglers(OwnerRecord& record, Policy policy) noexcept;
// Does that until nothing is counted any more, or for a while. Opening thread only, after the
// generation has ended.
Adopted adopt_all(OwnerRecord& record, Policy policy) noexcept;

// Returns all live storages of a pool of the domain's, or of all but its loaders', whoever is
// charged.
std::vector<StragglerPlace> find_live(const Domain::Impl& domain, const PoolHandle& pool);
std::vector<StragglerPlace> find_live(const Domain::Impl& domain);

// Returns "3 storages (1.5 MiB)".
std::string describe_total(const std::vector<StragglerPlace>& places);

// A request that a heap has refused.
struct Refusal {
  const char* function;
  Bytes asked;
  Place place = {};   // the line that asked, where it is known
  Bytes device = {};  // all the memory of its device, where it has one
};

// Throws OutOfMemory with what heap says and one line for each of the five places that hold most
// bytes of its pool. Takes the replace mutex. [alloc.resource]
[[noreturn, gnu::cold]] void fail_for_memory(const Refusal& refusal, const Domain::Impl& domain,
                                             const PoolHandle& pool, const Heap& heap);
// The same for the pool of record.
[[noreturn, gnu::cold]] void fail_for_memory(const Refusal& refusal, const OwnerRecord& record,
                                             const Heap& heap);

// Appends one line per place to text.
void append_jobs(std::string& text, const std::vector<JobPlace>& places);
void append_places(std::string& text, const std::vector<StragglerPlace>& places);

}  // namespace ebb::inline v0::detail
