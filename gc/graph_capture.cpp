// SPDX-License-Identifier: Apache-2.0
// Iterations that become graphs. [alloc.graph]
#include "device_heaps.h"
#include "device_pools.h"
#include "domain_impl.h"

#include <ebb/alloc/device_context.h>
#include <ebb/gc/graph_capture.h>

#include <utility>

namespace ebb::inline v0 {
namespace {

constexpr const char* function = "GraphStep::run";

// The heap that this thread has, and keeps, for what it makes on a device.
Heap* heap_of(Domain& domain, Device device) {
  const detail::DeviceHeapLease lease(domain.impl().require_device(device, function).memory,
                                      domain);
  return lease.is_temporary() ? nullptr : &lease.heap();
}

}  // namespace

GraphCapture::GraphCapture(Domain& domain, Stream stream)
    : context_(domain.use(stream, function)),
      stream_(stream),
      heap_(heap_of(domain, stream.device)) {
  is_holding_ = heap_ != nullptr && heap_->begin_hold();
}

GraphCapture::~GraphCapture() {
  abandon();
  take();
}

void GraphCapture::abandon() noexcept {
  if (std::exchange(is_capturing_, false)) {
    context_.abandon_capture(stream_);
  }
}

bool GraphCapture::begin(const Owner& owner, Made made) {
  if (!is_holding_) {
    return false;
  }
  if (made != Made::nothing) {
    Replay* const replay = owner.record()->devices->replay();
    if (replay == nullptr || !replay->attach(*heap_, stream_)) {
      return false;
    }
  }
  is_capturing_ = context_.begin_capture(stream_);
  return is_capturing_;
}

GraphExec GraphCapture::end(GraphExec into) {
  is_capturing_ = false;
  return context_.end_capture(stream_, into);
}

HeldBlocks GraphCapture::take() noexcept {
  return std::exchange(is_holding_, false) ? heap_->end_hold(stream_) : HeldBlocks();
}

Made made_by(const Owner& owner) noexcept {
  detail::DeviceUse* const devices = owner.record()->devices.get();
  if (devices == nullptr || !devices->has_made()) {
    return Made::nothing;
  }
  if (devices->plans() == nullptr) {
    return devices->has_plans() ? Made::otherwise : Made::without_plans;
  }
  return devices->replay()->is_as_planned() ? Made::as_planned : Made::otherwise;
}

}  // namespace ebb::inline v0
