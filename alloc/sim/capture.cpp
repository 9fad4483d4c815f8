// SPDX-License-Identifier: Apache-2.0
// Captures and what spoils them. Any thread.
#include "sim/capture.h"

#include <algorithm>

namespace ebb::inline v0 {

void SimCaptures::begin(SimQueue& origin) {
  const std::lock_guard lock(mutex_);
  for (const auto& other : captures_) {
    if (other->queues.count(&origin) != 0 || (other->thread == std::this_thread::get_id() &&
                                              other->origin->device() == origin.device())) {
      spoil(*other, SimCall::begin_capture, sim_error::capture_unsupported);
    }
  }
  captures_.push_back(std::make_unique<Capture>(
      Capture{++last_serial_, &origin, std::this_thread::get_id(), {}, {{&origin, {}}}}));
  count_.store(captures_.size(), std::memory_order_relaxed);
}

SimNodes SimCaptures::end(SimQueue& origin) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& c) { return c->origin == &origin; });
  if (found == captures_.end()) {
    refuse(SimCall::end_capture, {sim_error::illegal_state}, origin.device());
  }
  if ((*found)->thread != std::this_thread::get_id()) {
    refuse(SimCall::end_capture, {sim_error::capture_wrong_thread}, origin.device());
  }
  const std::unique_ptr<Capture> capture = std::move(*found);
  captures_.erase(found);
  count_.store(captures_.size(), std::memory_order_relaxed);
  if (capture->is_spoilt) {
    refuse(SimCall::end_capture, {sim_error::capture_invalidated}, origin.device());
  }
  if (!capture->all_joined()) {
    refuse(SimCall::end_capture, {sim_error::capture_unjoined}, origin.device());
  }
  return std::move(capture->nodes);
}

void SimCaptures::abandon(const SimQueue& origin) noexcept {
  const std::lock_guard lock(mutex_);
  captures_.erase(std::remove_if(captures_.begin(), captures_.end(),
                                 [&](const auto& c) { return c->origin == &origin; }),
                  captures_.end());
  count_.store(captures_.size(), std::memory_order_relaxed);
}

bool SimCaptures::collect(const SimQueue& queue, SimCall call, const SimWork& work) {
  if (none()) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  Capture* const capture = find(queue, call);
  if (capture == nullptr) {
    return false;
  }
  Frontier& frontier = capture->queues[&queue];
  capture->nodes.push_back({call, work, {frontier.begin(), frontier.end()}});
  frontier = {static_cast<std::uint32_t>(capture->nodes.size() - 1)};
  return true;
}

std::optional<SimCapturedPoint> SimCaptures::record(const SimQueue& queue) {
  if (none()) {
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  Capture* const capture = find(queue, SimCall::record);
  if (capture == nullptr) {
    return std::nullopt;
  }
  return SimCapturedPoint{capture->serial, capture->queues[&queue]};
}

void SimCaptures::join(const SimQueue& queue, const SimCapturedPoint& point) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& c) { return c->serial == point.capture; });
  if (found == captures_.end()) {
    refuse(SimCall::wait, {sim_error::captured_event}, queue.device());
  }
  Capture& capture = **found;
  if (capture.thread != std::this_thread::get_id()) {
    spoil(capture, SimCall::wait, sim_error::capture_unsupported);
  }
  if (Capture* const own = find(queue, SimCall::wait); own != nullptr && own != &capture) {
    spoil(*own, SimCall::wait, sim_error::capture_merge);
  }
  capture.queues[&queue].insert(point.after.begin(), point.after.end());
}

void SimCaptures::forbid_wait(const SimQueue& queue) {
  if (none()) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (Capture* const capture = find(queue, SimCall::wait); capture != nullptr) {
    spoil(*capture, SimCall::wait, sim_error::capture_isolation);
  }
}

void SimCaptures::forbid(SimCall call, Device device) {
  if (try_forbid(device)) {
    refuse(call, {sim_error::capture_unsupported}, device);
  }
}

bool SimCaptures::try_forbid(Device device) noexcept {
  if (none()) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  Capture* const capture = of_thread(device);
  if (capture != nullptr) {
    capture->is_spoilt = true;
  }
  return capture != nullptr;
}

SimCaptures::Capture* SimCaptures::find(const SimQueue& queue, SimCall call) {
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& c) { return c->queues.count(&queue) != 0; });
  if (found == captures_.end()) {
    return nullptr;
  }
  if ((*found)->thread != std::this_thread::get_id()) {
    spoil(**found, call, sim_error::capture_unsupported);
  }
  return found->get();
}

SimCaptures::Capture* SimCaptures::of_thread(Device device) noexcept {
  const auto found = std::find_if(captures_.begin(), captures_.end(), [&](const auto& c) {
    return c->thread == std::this_thread::get_id() && c->origin->device() == device;
  });
  return found == captures_.end() ? nullptr : found->get();
}

void SimCaptures::spoil(Capture& capture, SimCall call, int code) {
  capture.is_spoilt = true;
  refuse(call, {code}, capture.origin->device());
}

// Whether each node comes before the end of the stream that the capture began on.
bool SimCaptures::Capture::all_joined() const {
  const Frontier& last = queues.at(origin);
  std::vector<bool> reached(nodes.size(), false);
  for (const std::uint32_t node : last) {
    reached[node] = true;
  }
  // A node comes after earlier ones only.
  for (std::size_t node = nodes.size(); node-- > 0;) {
    if (!reached[node]) {
      return false;
    }
    for (const std::uint32_t before : nodes[node].after) {
      reached[before] = true;
    }
  }
  return true;
}

bool have_same_shape(const SimNodes& a, const SimNodes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SimNode& x, const SimNode& y) {
    return x.kind == y.kind && x.after == y.after;
  });
}

}  // namespace ebb::inline v0
