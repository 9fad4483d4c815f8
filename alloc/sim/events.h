// SPDX-License-Identifier: Apache-2.0
// The events and graphs of a simulated driver by number. Callers only, any thread. [alloc.sim]
#pragma once

#include "backend.h"
#include "sim/capture.h"
#include "sim/work.h"

#include <ebb/alloc/check.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace ebb::inline v0 {

struct SimEvent {
  explicit SimEvent(Device on) : device(on) {}

  const Device device;
  std::mutex mutex;                          // guards what follows
  std::shared_ptr<SimMark> mark;             // as it was recorded last, or null
  std::optional<SimCapturedPoint> captured;  // that was in a capture
};

struct SimGraph {
  SimGraph(Device on, SimNodes captured) : device(on), nodes(std::move(captured)) {}

  const Device device;
  std::mutex mutex;  // guards nodes
  SimNodes nodes;
};

// Ts by their numbers.
template <class T>
class SimTable {
 public:
  explicit SimTable(const char* what) : what_(what) {}

  // While it is held what at() returned stays. Readers are not ordered with each other by it.
  std::shared_lock<std::shared_mutex> reading() const { return std::shared_lock(mutex_); }
  // Throws std::invalid_argument for a number that is not known. Within reading().
  T& at(std::uint64_t id, const char* function) const {
    const auto found = known_.find(id);
    EBB_REQUIRE(found != known_.end(), function, "there is no ", what_, " ", std::to_string(id));
    return *found->second;
  }
  // Nothing for a number that is not known.
  std::optional<Device> device_of(std::uint64_t id) const noexcept {
    const auto lock = reading();
    const auto found = known_.find(id);
    return found == known_.end() ? std::nullopt : std::optional(found->second->device);
  }

  std::uint64_t add(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = next_event_id();
    known_.emplace(id, std::move(object));
    return id;
  }
  void remove(std::uint64_t id) noexcept {
    const std::lock_guard lock(mutex_);
    known_.erase(id);
  }
  std::uint64_t count() const {
    const auto lock = reading();
    return known_.size();
  }

 private:
  const char* const what_;
  mutable std::shared_mutex mutex_;  // guards known_
  std::unordered_map<std::uint64_t, std::unique_ptr<T>> known_;
};

}  // namespace ebb::inline v0
