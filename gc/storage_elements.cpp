// SPDX-License-Identifier: Apache-2.0
// Making storages of constructed elements. Nothing of it is on the way of plain storages: their
// destruction is the release of the pointer that they hold. [gc.storage]
#include "domain_impl.h"
#include "element_block.h"
#include "storage_cell.h"

#include <ebb/alloc/check.h>
#include <ebb/gc/storage.h>

#include <utility>

namespace ebb::inline v0 {
namespace {

void require_host(Device device, const char* function) {
  EBB_REQUIRE(device == cpu, function, "elements live in host memory, not on ", to_string(device));
}

// Returns the record whose pool a new block comes from: wrap() charges the same one, unless the
// owner closes in between; then the block is the runtime's in any case.
const OwnerRecord& pool_record(Owner owner, const char* function) {
  EBB_REQUIRE(owner, function, "the owner is empty");
  require_host(owner.stream().device, function);
  return owner.is_open() ? *owner.record() : *owner.domain()->impl().long_lived;
}

}  // namespace

Storage Storage::make_elements(Owner owner, const ElementOps& ops, std::size_t count,
                               const Birth& birth) {
  constexpr const char* function = "Storage::make_elements";
  const Bytes bytes = ops.size * count;
  DataPtr ptr =
      detail::make_element_ptr(pool_record(owner, function), ops, count, nullptr, 0, function);
  Storage storage = wrap(owner, std::move(ptr), bytes, birth);
  storage.head_->set(detail::storage_elements);
  return storage;
}

Storage Storage::wrap_elements(Owner owner, DataPtr data, const ElementOps& ops, std::size_t count,
                               const Birth& birth) {
  constexpr const char* function = "Storage::wrap_elements";
  const Bytes bytes = ops.size * count;
  require_host(data.device(), function);
  DataPtr ptr = detail::wrap_element_ptr(pool_record(owner, function), std::move(data), ops, count);
  Storage storage = wrap(owner, std::move(ptr), bytes, birth);
  storage.head_->set(detail::storage_elements);
  return storage;
}

const ElementOps* Storage::element_ops() const noexcept {
  if (!has_elements()) {
    return nullptr;
  }
  return detail::element_block_of(static_cast<const detail::StorageCell*>(head_)->ptr)->ops;
}

}  // namespace ebb::inline v0
