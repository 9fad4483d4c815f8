// SPDX-License-Identifier: Apache-2.0
// An owner as a std::pmr::memory_resource: standard containers whose memory an iteration counts.
// Any thread, as long as each container stays with one.
#pragma once

#include <ebb/alloc/place.h>
#include <ebb/gc/owner.h>

#include <memory_resource>

namespace ebb::inline v0 {

// Returns a resource that charges each allocation to owner as one storage, which reports name by
// the place given here. It lives as long as the runtime, and as anything that was allocated from
// it: a container that escapes its iteration is a straggler and frees safely at any time, on any
// thread. What such a container asks for after the iteration closed is charged to the runtime, or
// to a later iteration of the same loop that has asked for its resource too. No heap call. Throws
// std::invalid_argument when owner is empty. Allocation throws OutOfMemory.
std::pmr::memory_resource* resource_of(Owner owner, Place at = Place::here());

}  // namespace ebb::inline v0
