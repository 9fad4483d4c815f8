// SPDX-License-Identifier: Apache-2.0
// What an iteration has to do with devices: which streams it used, up to where they are to come
// before it is retired, and its plan there. Private to gc. [gc.close] [rt.stream]
#pragma once

#include "device_pools.h"
#include "plan_sites.h"

#include <ebb/alloc/replay.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace ebb::inline v0::detail {

// Part of an OwnerRecord, of domains that have devices; used again with it.
class DeviceUse {
 public:
  explicit DeviceUse(std::deque<DeviceMemory>& devices)
      : devices_(devices), lanes_(devices.size()) {}

  // The iteration's work is on stream. Any thread.
  void note(const DeviceMemory& device, Stream stream) noexcept {
    std::atomic<std::uint64_t>& lanes = lanes_[device.index];
    const std::uint64_t bit = std::uint64_t{1} << stream.lane();
    // Most note what is known. Relaxed: a close reads what its own thread and those that it has
    // waited for have noted; what others are just beginning is waited for by the next iteration.
    if ((lanes.load(std::memory_order_relaxed) & bit) == 0) {
      lanes.fetch_or(bit, std::memory_order_relaxed);
    }
  }

  // It made something there. Relaxed, as above. Any thread.
  void note_made() noexcept {
    if (!has_made()) {
      has_made_.store(true, std::memory_order_relaxed);
    }
  }
  bool has_made() const noexcept { return has_made_.load(std::memory_order_relaxed); }

  // From here to the end of the iteration by the opening thread.

  // A new iteration; sites: of its plans, null where it is to have none.
  void begin(PlanSites* sites, const Place& place) noexcept;
  // Returns the replay of what the opening thread makes on a device, which the first call begins;
  // null without a plan. The first heap that it is used with is the one that has a plan.
  Replay* replay() noexcept;
  bool has_plans() const noexcept { return sites_ != nullptr; }
  void join_replay() noexcept;
  // As Replay::end.
  bool end_replay() noexcept;
  // The set of its plans, when replay() was called, else null.
  const std::shared_ptr<PlanSet>* plans() const noexcept { return plans_; }

  // The iteration closes: notes up to where each stream is to come. Asks the driver, and queues an
  // event where there is work. Without memory the iteration counts as retired.
  void end() noexcept;
  // Whether all streams have come there. By whoever has the closed record: one thread at a time.
  bool is_retired() noexcept;
  void forget() noexcept { points_.clear(); }
  // Returns the names of the devices that have not, with commas.
  std::string describe_pending() const;

 private:
  struct Pending {
    DeviceContext* context;
    StreamPoint point;
  };

  std::deque<DeviceMemory>& devices_;
  std::vector<std::atomic<std::uint64_t>> lanes_;  // by device, a bit for each lane
  std::atomic<bool> has_made_{false};
  std::vector<Pending> points_;
  std::unique_ptr<Replay> replay_;  // made when first needed
  PlanSites* sites_ = nullptr;
  const std::shared_ptr<PlanSet>* plans_ = nullptr;
  Place place_;
};

}  // namespace ebb::inline v0::detail
