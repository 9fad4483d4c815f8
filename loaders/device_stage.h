// SPDX-License-Identifier: Apache-2.0
// Batches on their way to a device: filled in pinned memory, copied on a stream of the loader's
// own. Used by the loader's core, by any of its threads.
#pragma once

#include <ebb/gc/domain.h>
#include <ebb/gc/storage.h>
#include <ebb/runtime/device_stream.h>
#include <ebb/runtime/runtime.h>

#include <memory>

namespace ebb::inline v0::detail {

class DeviceStage {
 public:
  // Throws as DeviceStream does.
  DeviceStage(Runtime& rt, Device device, Owner owner, const Birth& birth)
      : domain_(rt.domain()), stream_(rt, device), owner_(owner.on(stream_)), birth_(birth) {}

  // Returns pinned memory for a slot. Throws OutOfMemory, DeviceError.
  Storage make_slot(Bytes bytes) const;
  // Queues a copy of bytes to memory on the device, which is returned. copied: what covers it.
  // Throws OutOfMemory, DeviceError.
  Storage copy(const Storage& slot, Bytes bytes, StreamPoint& copied) const;
  // Whether the copy is over: only then may the slot be written to. A lost device copies no more.
  bool is_done(const StreamPoint& copied) const noexcept;
  // Has the thread's current stream there come after the copy, and declares its use.
  void hand_over(const Storage& batch, const StreamPoint& copied) const;

 private:
  const std::shared_ptr<Domain> domain_;
  const DeviceStream stream_;
  const Owner owner_;
  const Birth birth_;
};

}  // namespace ebb::inline v0::detail
