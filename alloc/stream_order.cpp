// SPDX-License-Identifier: Apache-2.0
// The order between the streams of a device, as it is known without asking: what each comes after.
// Vector clocks over the events, see Mattern, "Virtual time and global states of distributed
// systems" (1989). Any thread: one lock. [alloc.cuda]
#include "backend.h"
#include "watched.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>

#include <algorithm>

namespace ebb::inline v0 {

namespace {

// How long a wait polls without sleeping, and between which bounds its sleeps grow.
constexpr std::chrono::microseconds spin{50};
constexpr std::chrono::microseconds shortest_sleep{20};
constexpr std::chrono::microseconds longest_sleep{1000};

constexpr std::uint64_t bit_of(std::uint32_t lane) {
  return std::uint64_t{1} << lane;
}

}  // namespace

StreamPoint DeviceContext::record(Stream stream) {
  require(stream, "DeviceContext::record");
  return watched("DeviceContext::record", [&] {
    const std::lock_guard lock(mutex_);
    require_not_others_capture(stream.lane(), "DeviceContext::record");
    return StreamPoint{stream, record_locked(stream.lane())};
  });
}

std::uint64_t DeviceContext::record_locked(std::uint32_t index) {
  poll_locked();  // gives events back, so that few are made
  if (spare_events_.empty()) {
    recorded_.reserve(recorded_.size() + 1);
    spare_events_.reserve(recorded_.capacity() + 1);
    spare_events_.push_back(backend_->make_event(device_).id);
  }
  Lane& lane = lanes_[index];
  // Counted on before the driver is asked: who still reads the old number has queued its work
  // before the driver sees this.
  const std::uint64_t number = lane.next.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t event = spare_events_.back();
  backend_->record({event}, {device_, lane.queue});
  spare_events_.pop_back();
  const bool is_captured = lane.before_graph != 0;
  recorded_.push_back({index, is_captured, number, event, lane.after});
  if (lane.is_ended && !is_captured && !is_capturing()) {  // else it has one after the capture
    leave(lane);
  }
  return number;
}

void DeviceContext::require_not_others_capture(std::uint32_t lane, const char* function) const {
  EBB_REQUIRE(!is_others_capture(lane), function, "stream ", std::to_string(lanes_[lane].queue),
              " on ", to_string(device_),
              " is captured by another thread: use another stream until it has its graph");
}

// What other threads ask of the lane from now on is answered by an event before the graph: the
// driver would refuse to record one, and spoil the graph.
void DeviceContext::mark_captured(std::uint32_t index) {
  lanes_[index].before_graph = record_locked(index);
}

// The first one recorded that covers the point, or null.
const DeviceContext::Recorded* DeviceContext::event_after(std::uint32_t lane,
                                                          std::uint64_t number) const noexcept {
  const auto found = std::find_if(recorded_.begin(), recorded_.end(), [&](const Recorded& it) {
    return it.lane == lane && it.number >= number;
  });
  return found == recorded_.end() ? nullptr : &*found;
}

void DeviceContext::wait(Stream later, StreamPoint point) {
  require(later, "DeviceContext::wait");
  wait_unless_ended(later, point);
}

void DeviceContext::wait_unless_ended(Stream later, StreamPoint point) {
  watched("DeviceContext::wait", [&] {
    const std::lock_guard lock(mutex_);
    const std::uint32_t lane = point.stream.lane();
    if (knows(later) && !is_outside_capture(later.lane(), lane, point.number) &&
        !is_after_locked(later.lane(), lane, point.number)) {
      require_not_others_capture(later.lane(), "DeviceContext::wait");
      wait_locked(later, lane, point.number);
    }
  });
}

void DeviceContext::wait_locked(Stream later, std::uint32_t lane, std::uint64_t number) {
  number = covered(lane, number);
  const Recorded* event = event_after(lane, number);
  if (event == nullptr) {
    record_locked(lane);
    event = event_after(lane, number);
  }
  Lane& to = lanes_[later.lane()];
  if (event->is_captured && to.before_graph == 0) {
    mark_captured(later.lane());
    beside_capture_ |= bit_of(later.lane());
    event = event_after(lane, number);
  }
  backend_->wait(later, {event->event});
  for (std::size_t i = 0; i < to.after.size(); ++i) {
    to.after[i] = std::max(to.after[i], event->before[i]);
  }
  to.after[lane] = std::max(to.after[lane], event->number);
}

// Whether the wait is one of a captured stream for what is not in the graph, which cannot have it.
// Such a lane, and one that another waits for meanwhile, is waited for before each launch.
bool DeviceContext::is_outside_capture(std::uint32_t later, std::uint32_t earlier,
                                       std::uint64_t number) {
  const std::uint64_t before = lanes_[earlier].before_graph;
  if (!is_capturing() || later == earlier || (before != 0 && number > before)) {
    return false;
  }
  beside_capture_ |= bit_of(earlier);
  return lanes_[later].before_graph != 0;
}

// After the end of its last stream a lane has no more events, until it has another one.
std::uint64_t DeviceContext::covered(std::uint32_t index, std::uint64_t number) const noexcept {
  const Lane& lane = lanes_[index];
  if (lane.before_graph != 0 && !is_capturing()) {
    return std::min(number, lane.before_graph);
  }
  return lane.is_known && !lane.is_leaving
             ? number
             : std::min(number, lane.next.load(std::memory_order_relaxed) - 1);
}

bool DeviceContext::is_after_locked(std::uint32_t later, std::uint32_t earlier,
                                    std::uint64_t number) const noexcept {
  number = covered(earlier, number);
  return later == earlier || number <= lanes_[earlier].done ||
         number <= lanes_[later].after[earlier];
}

bool DeviceContext::is_after(std::uint32_t later, std::uint32_t earlier,
                             std::uint64_t number) noexcept {
  if (later == earlier) {
    return true;
  }
  const std::lock_guard lock(mutex_);
  return is_after_locked(later, earlier, number);
}

bool DeviceContext::is_over(std::uint32_t lane, std::uint64_t number) const noexcept {
  const std::lock_guard lock(mutex_);
  return covered(lane, number) <= lanes_[lane].done;
}

bool DeviceContext::poll() noexcept {
  if (is_lost()) {
    return false;
  }
  try {
    const std::lock_guard lock(mutex_);
    return poll_locked();
  } catch (const DeviceError& error) {  // the next call that may throw says so
    if (error.is_lost()) {
      note_loss(error);
    }
  } catch (...) {
  }
  return false;
}

// All of them, since a late event of one stream must not hide those of others that are done.
bool DeviceContext::poll_locked() {
  if (recorded_.empty() || is_capturing()) {
    return false;
  }
  bool any = false;
  std::array<bool, Stream::lanes> is_late{};
  for (const Recorded& it : recorded_) {
    if (!it.is_captured && !is_late[it.lane]) {
      is_late[it.lane] = !backend_->is_done({it.event});  // then those after it are not done either
      lanes_[it.lane].done = is_late[it.lane] ? lanes_[it.lane].done : it.number;
      any = any || !is_late[it.lane];
    }
  }
  if (any) {
    std::erase_if(recorded_, [this](const Recorded& it) {
      const bool is_over = !it.is_captured && it.number <= lanes_[it.lane].done;
      if (is_over) {
        spare_events_.push_back(it.event);
      }
      return is_over;
    });
    free_left_lanes();
  }
  return any;
}

void DeviceContext::free_left_lanes() noexcept {
  for (Lane& lane : lanes_) {
    if (lane.is_leaving && lane.done + 1 == lane.next.load(std::memory_order_relaxed)) {
      lane.is_leaving = false;
      lane.is_ended = false;
      lane.is_known = false;
    }
  }
}

bool DeviceContext::is_done(StreamPoint point) {
  return watched("DeviceContext::is_done", [&] {
    require_no_capture("DeviceContext::is_done");
    const std::lock_guard lock(mutex_);
    const std::uint32_t lane = point.stream.lane();
    const std::uint64_t number = covered(lane, point.number);
    if (number <= lanes_[lane].done) {
      return true;
    }
    if (event_after(lane, number) == nullptr) {
      record_locked(lane);
    }
    poll_locked();
    return number <= lanes_[lane].done;
  });
}

bool DeviceContext::wait_until(StreamPoint point, std::chrono::steady_clock::time_point deadline) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::chrono::microseconds sleep = shortest_sleep;
  while (!is_done(point)) {
    const auto now = Clock::now();
    if (now >= deadline) {
      return false;
    }
    if (now - start < spin) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(sleep, deadline - now));
    sleep = std::min(2 * sleep, longest_sleep);
  }
  return true;
}

bool DeviceContext::wait_for_all(std::chrono::steady_clock::time_point deadline) {
  for (std::uint32_t i = 0; i < Stream::lanes; ++i) {
    const std::optional<StreamPoint> last = last_of(i);
    if (last && !wait_until(*last, deadline)) {
      return false;
    }
  }
  return true;
}

// The point that covers a lane's work; nothing where it has no work that is not known to be done.
std::optional<StreamPoint> DeviceContext::last_of(std::uint32_t index) const noexcept {
  const std::lock_guard lock(mutex_);
  if (!lanes_[index].is_known) {
    return std::nullopt;
  }
  return StreamPoint{{device_, index}, lanes_[index].next.load(std::memory_order_relaxed)};
}

}  // namespace ebb::inline v0
