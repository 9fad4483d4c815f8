// SPDX-License-Identifier: Apache-2.0
// Copies of batches to a device, ahead of the loop. [load.slots]
#include "device_stage.h"

#include <ebb/alloc/device_context.h>

namespace ebb::inline v0::detail {

namespace {

constexpr const char* function = "Loader::next";

}  // namespace

Storage DeviceStage::make_slot(Bytes bytes) const {
  return Storage::make_pinned(owner_, bytes, default_align_cpu, birth_);
}

Storage DeviceStage::copy(const Storage& slot, Bytes bytes, StreamPoint& copied) const {
  const Stream stream = stream_;
  Storage batch = Storage::make(owner_, bytes, default_align_cuda, birth_);
  DeviceContext& context = domain_->device(stream.device, function);
  context.copy(batch.data(), slot.data(), bytes, stream);
  copied = context.record(stream);
  return batch;
}

bool DeviceStage::is_done(const StreamPoint& copied) const noexcept {
  const Stream stream = stream_;
  try {
    DeviceContext& context = domain_->device(stream.device, function);
    return context.is_lost() || (!context.is_capturing() && context.is_done(copied));
  } catch (...) {
    return false;
  }
}

void DeviceStage::hand_over(const Storage& batch, const StreamPoint& copied) const {
  const Stream own = stream_;
  const Stream current = Owner::current_or_none().stream();
  if (current.device == own.device && current != own) {
    domain_->use(current, function).wait(current, copied);
    batch.used_on(current);
  }
}

}  // namespace ebb::inline v0::detail
