// SPDX-License-Identifier: Apache-2.0
// Pools of devices, made at first use. [alloc.cuda] [rt.exit]
#include "device_pools.h"

#include "domain_impl.h"
#include "storage_cell.h"

#include <ebb/alloc/check.h>

#include <string>

namespace ebb::inline v0::detail {

DevicePool::DevicePool(DeviceContext& context, Kind kind, Bytes limit, Bytes size) noexcept
    : number(next_pool_number()), context_(context), kind_(kind), limit_(limit), size_(size) {}

Heap& DevicePool::acquire(const std::shared_ptr<void>& keep_alive) {
  const PoolHandle* const handle = made();
  return (handle != nullptr ? *handle : make(keep_alive)).acquire();
}

const PoolHandle& DevicePool::make(const std::shared_ptr<void>& keep_alive) {
  const std::lock_guard lock(mutex_);
  if (handle_.has_value()) {
    return *handle_;
  }
  const std::string device = to_string(context_.device());
  EBB_REQUIRE(!closed_, "Storage::make", "the runtime of ", device, " has been destroyed");
  Source& pages = is_pinned() ? context_.pinned() : context_.pages();
  if (is_pinned()) {
    host_stream_ = context_.make_stream();
  }
  pool_.emplace(pages, PoolOptions{.name = is_pinned() ? "pinned memory for " + device : device,
                                   .limit = limit_,
                                   .construct_cell = StorageCell::construct,
                                   .keep_alive = keep_alive,
                                   .order = &context_});
  made_.store(&handle_.emplace(*pool_), std::memory_order_release);
  return *handle_;
}

MemoryStats DevicePool::stats() const noexcept {
  const PoolHandle* const handle = made();
  return handle != nullptr ? handle->stats() : MemoryStats{};
}

Bytes DevicePool::trim() const noexcept {
  const PoolHandle* const handle = made();
  return handle != nullptr ? handle->trim() : Bytes{};
}

void DevicePool::close() noexcept {
  std::optional<Pool> ending;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (pool_.has_value()) {
      ending.emplace(std::move(*pool_));
      pool_.reset();
    }
  }
}

DeviceMemory::DeviceMemory(const DomainDevice& device, std::size_t its_index)
    : context_(device.context),
      index(its_index),
      memory(*context_, DevicePool::Kind::device, device.limit, device.size),
      pinned(*context_, DevicePool::Kind::pinned, device.pinned_limit, Bytes{}) {}

}  // namespace ebb::inline v0::detail
