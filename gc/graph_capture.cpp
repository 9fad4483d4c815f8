// SPDX-License-Identifier: Apache-2.0
// Iterations that become graphs. [alloc.graph]
#include "device_heaps.h"
#include "device_pools.h"
#include "domain_impl.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/gc/graph_capture.h>

#include <stdexcept>
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

bool GraphCapture::begin(const Owner& owner) {
  Replay* const replay = is_holding_ ? owner.record()->devices->replay() : nullptr;
  if (replay == nullptr || !replay->attach(*heap_, stream_)) {
    return false;
  }
  is_capturing_ = context_.begin_capture(stream_);
  return is_capturing_;
}

GraphExec GraphCapture::end(GraphExec into) {
  is_capturing_ = false;
  lanes_ = context_.captured_lanes();
  return context_.end_capture(stream_, into);
}

HeldBlocks GraphCapture::take() noexcept {
  return std::exchange(is_holding_, false) ? heap_->end_hold(stream_) : HeldBlocks();
}

bool is_as_planned(const Owner& owner) noexcept {
  detail::DeviceUse* const devices = owner.record()->devices.get();
  return devices != nullptr && devices->plans() != nullptr && devices->replay()->is_as_planned();
}

}  // namespace ebb::inline v0
