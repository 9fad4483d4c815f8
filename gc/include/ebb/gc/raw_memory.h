// SPDX-License-Identifier: Apache-2.0
// An owner's memory by bare address and size, for code that keeps nothing else: what Thrust asks
// for its temporary memory. A value; any thread.
#pragma once

#include <ebb/alloc/place.h>
#include <ebb/gc/owner.h>

#include <cstddef>

namespace ebb::inline v0 {

// Each allocation is one storage charged to owner, on its stream; what is not freed is a straggler
// with the place given here. No heap call, but when more is live at once than ever before.
//
//   auto raw = it.raw(stream);
//   thrust::sort(thrust::cuda::par_nosync(raw).on(cuda_stream(rt, stream)), first, last);
class RawMemory {
 public:
  using value_type = char;

  // Throws std::invalid_argument when owner is empty.
  explicit RawMemory(Owner owner, Place at = Place::here());

  // Returns at least bytes, aligned as is usual on the device; zero bytes get an address of their
  // own. Throws OutOfMemory, std::bad_alloc when the map of addresses cannot grow, DeviceError, and
  // std::invalid_argument for a stream that is not the runtime's. What is given back is had again
  // in the order of its stream: another stream that uses it as well is no concern of this.
  char* allocate(std::size_t bytes) const;
  // Takes back what allocate returned for the same number of bytes, by this or another RawMemory of
  // the runtime, also after the iteration has closed. Throws std::invalid_argument for an address
  // that is not live, or another number; nothing is freed then.
  void deallocate(char* data, std::size_t bytes) const;

 private:
  Owner owner_;
  Place place_;
};

}  // namespace ebb::inline v0
