// SPDX-License-Identifier: Apache-2.0
// Memory by bare address and size, for code that keeps nothing else: what Thrust asks of an
// allocator for its temporary memory. [alloc.resource]
// Allocation as the upstream's thread rule says; deallocate on any thread: one lock.
#pragma once

#include <ebb/alloc/address_map.h>
#include <ebb/alloc/resource.h>

#include <cstddef>
#include <mutex>

namespace ebb::inline v0 {

// Finds each block by its address. No heap call, but when more blocks are live than ever before.
//
//   ebb::RawResource raw(heap);
//   thrust::sort(thrust::cpp::par(raw), first, last);
class RawResource {
 public:
  using value_type = char;

  // upstream must outlive this. Blocks are aligned as is usual on stream's device.
  explicit RawResource(Resource& upstream, Stream stream = {}) noexcept
      : upstream_(upstream), stream_(stream) {}
  RawResource(const RawResource&) = delete;
  RawResource& operator=(const RawResource&) = delete;
  RawResource(RawResource&&) = delete;
  RawResource& operator=(RawResource&&) = delete;
  // Gives back what is still live.
  ~RawResource();

  // Returns at least bytes; zero bytes get an address of their own. Throws OutOfMemory, or
  // std::bad_alloc when the map of addresses cannot grow.
  char* allocate(std::size_t bytes);

  // Takes back what allocate returned for the same number of bytes. Throws std::invalid_argument
  // for an address that is not live here, or another number; nothing is freed then.
  void deallocate(char* data, std::size_t bytes);

  // Returns how many blocks are live.
  std::size_t blocks_live() const noexcept;

 private:
  Resource& upstream_;
  const Stream stream_;
  mutable std::mutex mutex_;
  AddressMap<BlockRecord> live_;  // guarded by mutex_
};

}  // namespace ebb::inline v0
