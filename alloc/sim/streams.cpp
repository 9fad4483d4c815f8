// SPDX-License-Identifier: Apache-2.0
// Finding, making and ending streams. Any thread.
#include "sim/streams.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace ebb::inline v0 {

SimStreams::SimStreams(unsigned devices, const std::shared_ptr<CallGate>& gate) : gate_(gate) {
  for (unsigned index = 0; index < devices; ++index) {
    defaults_.push_back({make_queue({DeviceKind::sim, index}, 0)});
  }
}

SimStreams::~SimStreams() {
  if (mark_.in_child()) {
    // Their threads are the parent's, and each keeps its queue.
    for_each([](const Known& known) { detail::leave_behind(known.queue.get()); });
    return;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for_each([&](const Known& known) { known.queue->stop(deadline); });
}

const SimQueuePtr& SimStreams::at(Stream stream, const char* function) const {
  EBB_REQUIRE(stream.device.kind == DeviceKind::sim && stream.device.index < defaults_.size(),
              function, to_string(stream.device), " is no device of this machine");
  if (stream.id == 0) {
    return defaults_[stream.device.index].queue;
  }
  const auto found = known_.find(stream.id);
  EBB_REQUIRE(found != known_.end() && found->second.queue->device() == stream.device, function,
              to_string(stream.device), " has no stream ", std::to_string(stream.id));
  return found->second.queue;
}

void SimStreams::make(Stream stream) {
  const std::lock_guard lock(mutex_);
  join_leaving();
  EBB_REQUIRE(stream.id != 0 && known_.count(stream.id) == 0, "Backend::make_stream", "stream ",
              std::to_string(stream.id), " is there already");
  leaving_.reserve(leaving_.size() + known_.size() + 1);  // remove() cannot ask for memory
  known_.emplace(stream.id, Known{make_queue(stream.device, stream.lane()), stream.lane(), true});
}

void SimStreams::borrow(Stream stream, void* handle) {
  const std::lock_guard lock(mutex_);
  EBB_REQUIRE(stream.id != 0 && known_.count(stream.id) == 0, "Backend::borrow_stream", "stream ",
              std::to_string(stream.id), " is there already");
  SimQueuePtr queue = find_handle(stream.device, handle);
  EBB_REQUIRE(queue != nullptr, "Backend::borrow_stream", "the handle is of no stream of ",
              to_string(stream.device));
  queue->pace().lag_us.store(lag_of(stream.lane()), std::memory_order_relaxed);
  known_.emplace(stream.id, Known{std::move(queue), stream.lane(), false});
}

bool SimStreams::remove(Stream stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(stream.id);
  if (found == known_.end()) {
    return false;
  }
  if (found->second.is_made && found->second.queue->pushed() != 0) {
    found->second.queue->close();
    leaving_.push_back(found->second);
  }
  known_.erase(found);
  return true;
}

void* SimStreams::make_host_stream(Device device) {
  const std::lock_guard lock(mutex_);
  host_.push_back({make_queue(device, 0)});
  return host_.back().queue.get();
}

std::uint64_t SimStreams::count() const {
  const auto lock = reading();
  return known_.size();
}

void SimStreams::hold_all(bool is_held) {
  const std::lock_guard lock(mutex_);
  all_held_ = is_held;
  for_each([&](const Known& known) {
    known.queue->pace().is_held.store(is_held, std::memory_order_relaxed);
  });
}

void SimStreams::set_delay_all(std::chrono::microseconds delay) {
  const std::lock_guard lock(mutex_);
  delay_us_ = delay.count();
  for_each([&](const Known& known) {
    known.queue->pace().delay_us.store(delay_us_, std::memory_order_relaxed);
  });
}

void SimStreams::set_lag_all(std::chrono::microseconds lag) {
  const std::lock_guard lock(mutex_);
  lag_us_ = lag.count();
  for_each([&](const Known& known) {
    known.queue->pace().lag_us.store(lag_of(known.lane), std::memory_order_relaxed);
  });
}

bool SimStreams::is_idle(std::memory_order order) const {
  const auto lock = reading();
  bool idle = true;
  for_each([&](const Known& known) { idle = known.queue->is_idle(order) && idle; });
  return idle;
}

SimQueuePtr SimStreams::make_queue(Device device, std::uint32_t lane) const {
  auto queue = std::make_shared<SimQueue>(device, gate_);
  SimPace& pace = queue->pace();
  pace.is_held.store(all_held_, std::memory_order_relaxed);
  pace.delay_us.store(delay_us_, std::memory_order_relaxed);
  pace.lag_us.store(lag_of(lane), std::memory_order_relaxed);
  return queue;
}

SimQueuePtr SimStreams::find_handle(Device device, const void* handle) const {
  if (handle == nullptr) {
    return defaults_[device.index].queue;
  }
  SimQueuePtr found;
  for_each([&](const Known& known) {
    if (known.queue.get() == handle && known.queue->device() == device) {
      found = known.queue;
    }
  });
  return found;
}

// Joining orders this thread after the queue, so it is put off until a stream is made.
void SimStreams::join_leaving() {
  const auto over = std::partition(leaving_.begin(), leaving_.end(),
                                   [](const Known& known) { return !known.queue->is_over(); });
  std::for_each(over, leaving_.end(),
                [](const Known& known) { known.queue->stop(std::chrono::steady_clock::now()); });
  leaving_.erase(over, leaving_.end());
}

void SimStreams::for_each(const std::function<void(const Known&)>& visit) const {
  std::for_each(defaults_.begin(), defaults_.end(), visit);
  for (const auto& [id, known] : known_) {
    visit(known);
  }
  std::for_each(host_.begin(), host_.end(), visit);
  std::for_each(leaving_.begin(), leaving_.end(), visit);
}

}  // namespace ebb::inline v0
