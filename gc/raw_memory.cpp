// SPDX-License-Identifier: Apache-2.0
// Storages found by their address, under a lock of the domain's. [rt.tensor]
#include "domain_impl.h"

#include <ebb/alloc/check.h>
#include <ebb/gc/raw_memory.h>
#include <ebb/gc/storage.h>

#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace ebb::inline v0 {

RawMemory::RawMemory(Owner owner, Place at) : owner_(owner), place_(at) {
  EBB_REQUIRE(owner, "RawMemory", "the owner is empty: pass a Runtime or an Iteration");
}

char* RawMemory::allocate(std::size_t bytes) const {
  Domain::Impl& domain = owner_.domain()->impl();
  // First the storage: if the map has no room, its handle gives it back.
  StorageHolder held(
      Storage::make(owner_, Bytes{bytes}, default_align(owner_.stream().device), Birth{place_}),
      "raw memory", "RawMemory::allocate");
  char* const data = static_cast<char*>(held.storage().data());
  const std::lock_guard lock(domain.raw_mutex);
  if (!domain.raw_live.make_room()) {
    throw std::bad_alloc();
  }
  domain.raw_live.insert(data, std::exchange(held.storage_.head_, nullptr));
  return data;
}

void RawMemory::deallocate(char* data, std::size_t bytes) const {
  Domain::Impl& domain = owner_.domain()->impl();
  domain.mark.require_own_process("RawMemory::deallocate");
  // Dropped after the lock: the last storage of a runtime takes the domain along.
  StorageHolder last;
  const std::lock_guard lock(domain.raw_mutex);
  detail::StorageHead* const head = domain.raw_live.find(data);
  EBB_REQUIRE(head != nullptr, "RawMemory",
              "nothing is live at this address: freed twice, or from elsewhere");
  EBB_REQUIRE(head->bytes == Bytes{bytes}, "RawMemory", "the memory has ",
              std::to_string(head->bytes.count()), " bytes, not ", std::to_string(bytes));
  domain.raw_live.take(data);
  last.storage_ = Storage(head);
}

}  // namespace ebb::inline v0
