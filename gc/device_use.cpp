// SPDX-License-Identifier: Apache-2.0
// The streams of a closed iteration, and its replay on a device. [gc.close] [alloc.replay]
#include "device_use.h"

#include <ebb/alloc/error.h>

#include <algorithm>
#include <bit>
#include <new>

namespace ebb::inline v0::detail {
namespace {

// A lost device does no more work. What fails otherwise is asked again.
bool is_done(DeviceContext& context, StreamPoint point) noexcept {
  if (context.is_capturing()) {
    return false;
  }
  try {
    return context.is_done(point);
  } catch (...) {
    return context.is_lost();
  }
}

}  // namespace

void DeviceUse::begin(PlanSites* sites, const Place& place) noexcept {
  for (std::atomic<std::uint64_t>& lanes : lanes_) {
    lanes.store(0, std::memory_order_relaxed);
  }
  has_made_.store(false, std::memory_order_relaxed);
  points_.clear();
  sites_ = sites;
  plans_ = nullptr;
  place_ = place;
}

Replay* DeviceUse::replay() noexcept {
  if (plans_ != nullptr) [[likely]] {
    return replay_.get();
  }
  if (sites_ == nullptr) {
    return nullptr;
  }
  const std::shared_ptr<PlanSet>* const set = sites_->find(place_);
  try {
    if (replay_ == nullptr) {
      replay_ = std::make_unique<Replay>();
    }
  } catch (const std::bad_alloc&) {
  }
  if (set == nullptr || replay_ == nullptr) {
    sites_ = nullptr;
    return nullptr;
  }
  plans_ = set;
  replay_->begin(**set, place_);
  return replay_.get();
}

void DeviceUse::join_replay() noexcept {
  if (plans_ != nullptr) {
    replay_->join();
  }
}

bool DeviceUse::end_replay() noexcept {
  sites_ = nullptr;
  return plans_ != nullptr && replay_->end();
}

void DeviceUse::end() noexcept {
  for (DeviceMemory& device : devices_) {
    std::uint64_t lanes = lanes_[device.index].load(std::memory_order_relaxed);
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
      // Points are known by the lane, whose stream may be gone.
      const StreamPoint point = device.context().newest_of(lane);
      if (is_done(device.context(), point)) {
        continue;
      }
      try {
        points_.push_back({&device.context(), point});
      } catch (const std::bad_alloc&) {
        return;
      }
    }
  }
}

bool DeviceUse::is_retired() noexcept {
  std::erase_if(points_, [](const Pending& it) { return is_done(*it.context, it.point); });
  return points_.empty();
}

std::string DeviceUse::describe_pending() const {
  std::string names;
  for (const Pending& it : points_) {
    const std::string name = to_string(it.context->device());
    if (names.find(name) == std::string::npos) {
      names += (names.empty() ? "" : ", ") + name;
    }
  }
  return names;
}

}  // namespace ebb::inline v0::detail
