// SPDX-License-Identifier: Apache-2.0
// The heaps of devices that a thread has taken, beside the one in its slot. Private to gc. Each
// function works on the calling thread's only. [gc.owner]
#pragma once

#include "device_pools.h"
#include "slot.h"

#include <cstdint>

namespace ebb::inline v0::detail {

// The heap of one allocation on a device: one that the thread has taken before, or a new one, which
// it keeps until it ends, or until the scope for pool threads ends in which it was taken.
class DeviceHeapLease {
 public:
  // Throws as DevicePool::acquire does.
  DeviceHeapLease(DevicePool& pool, Domain& domain);
  DeviceHeapLease(const DeviceHeapLease&) = delete;
  DeviceHeapLease& operator=(const DeviceHeapLease&) = delete;
  DeviceHeapLease(DeviceHeapLease&&) = delete;
  DeviceHeapLease& operator=(DeviceHeapLease&&) = delete;
  ~DeviceHeapLease() {
    if (temporary_) {
      Pool::park(*heap_);
    }
  }

  Heap& heap() const noexcept { return *heap_; }
  // Whether the thread gives the heap back at once: then it is no part of an iteration's plan.
  bool is_temporary() const noexcept { return temporary_; }

 private:
  Heap* heap_;
  bool temporary_ = false;
};

// Parks what was taken within more than that many OwnerScopes: 0, all but what none surrounded.
void park_device_heaps_within(std::uint32_t scopes) noexcept;
// Parks all: the thread ends.
void park_device_heaps() noexcept;
// Parks the heap of one pool, by its number.
void park_device_heap_of_pool(std::uint64_t pool) noexcept;

}  // namespace ebb::inline v0::detail
