// SPDX-License-Identifier: Apache-2.0
// Allocations of standard containers as storages: the handle lies in front of the bytes, so that
// freeing needs nothing but the address.
#include "owner_record.h"

#include <ebb/alloc/check.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/owner_resource.h>
#include <ebb/gc/storage.h>

#include <algorithm>
#include <new>
#include <utility>

namespace ebb::inline v0 {
namespace detail {
namespace {

// Room for the handle that keeps the bytes after it aligned.
std::size_t header_bytes(std::size_t alignment) noexcept {
  return std::max(alignment, std::max(sizeof(StorageHolder), alignof(std::max_align_t)));
}

StorageHolder* handle_of(void* memory) noexcept {
  return static_cast<StorageHolder*>(
      static_cast<void*>(static_cast<std::byte*>(memory) - sizeof(StorageHolder)));
}

}  // namespace

void* ScopedResource::do_allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t header = header_bytes(alignment);
  const Owner owner(record_, generation_.load(std::memory_order_relaxed), Stream{});
  const Birth birth{{file_.load(std::memory_order_relaxed), line_.load(std::memory_order_relaxed)}};
  Storage storage = Storage::make(owner, Bytes{bytes} + Bytes{header}, Align{header}, birth);
  storage.set_name("pmr");
  std::byte* const memory = static_cast<std::byte*>(storage.data()) + header;
  // The container uses the bytes by address, and the handle lies among them: not to be revoked.
  new (handle_of(memory)) StorageHolder(std::move(storage), "a container", "resource_of");
  return memory;
}

void ScopedResource::do_deallocate(void* memory, std::size_t /*bytes*/, std::size_t /*alignment*/) {
  if (record_.domain->in_child()) {
    return;  // the handle may lie in memory that the parent sees
  }
  StorageHolder* const handle = handle_of(memory);
  // The last storage of a runtime takes the domain along, and this object with it.
  const StorageHolder last = std::move(*handle);
  handle->~StorageHolder();
}

}  // namespace detail

std::pmr::memory_resource* resource_of(Owner owner, Place at) {
  EBB_REQUIRE(owner, "resource_of", "the owner is empty: pass a Runtime or an Iteration");
  owner.domain()->require_usable("resource_of");
  owner.record()->resource.aim(owner.generation(), at);
  return &owner.record()->resource;
}

}  // namespace ebb::inline v0
