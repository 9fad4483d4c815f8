// SPDX-License-Identifier: Apache-2.0
// The streams of a device, what is queued on them, and the end of a device that is lost. Their
// order is in stream_order.cpp. Any thread.
#include "backend.h"
#include "watched.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace ebb::inline v0 {

DeviceContext::DeviceContext(Device device, std::shared_ptr<Backend> backend)
    : device_(device), backend_(std::move(backend)) {
  lanes_[0].is_known = true;
}

DeviceContext::~DeviceContext() {
  for (const Recorded& recorded : recorded_) {
    backend_->destroy_event({recorded.event});
  }
  for (const std::uint64_t event : spare_events_) {
    backend_->destroy_event({event});
  }
  for (std::size_t lane = 1; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].is_known && !lanes_[lane].is_leaving) {
      backend_->destroy_stream({device_, lanes_[lane].queue});
    }
  }
}

Source& DeviceContext::pages() {
  return watched("DeviceContext::pages", [&]() -> Source& { return backend_->source(device_); });
}

Source& DeviceContext::pinned() {
  return watched("DeviceContext::pinned", [&]() -> Source& { return backend_->pinned(device_); });
}

Stream DeviceContext::make_stream() {
  return watched("DeviceContext::make_stream", [&] {
    return open_lane("DeviceContext::make_stream",
                     [&](Stream stream) { backend_->make_stream(stream); });
  });
}

Stream DeviceContext::borrow_stream(void* handle) {
  return watched("DeviceContext::borrow_stream", [&] {
    return open_lane("DeviceContext::borrow_stream",
                     [&](Stream stream) { backend_->borrow_stream(stream, handle); });
  });
}

template <class Make>
Stream DeviceContext::open_lane(const char* function, Make make) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t lane = free_lane(function);
  const Stream stream{device_, next_stream_id(lane)};
  make(stream);
  lanes_[lane].stream.store(stream.id, std::memory_order_relaxed);
  lanes_[lane].queue = stream.id;
  lanes_[lane].is_known = true;
  lanes_[lane].is_ended = false;
  lanes_[lane].after = {};
  return stream;
}

// One that was never used, or whose last stream has done all its work: who had memory of that one
// need not wait for the next one of the lane.
std::uint32_t DeviceContext::free_lane(const char* function) {
  const auto find = [this] {
    std::uint32_t lane = 1;
    while (lane < Stream::lanes && lanes_[lane].is_known) {
      ++lane;
    }
    return lane;
  };
  end_ended_lanes();
  std::uint32_t lane = find();
  if (lane == Stream::lanes && poll_locked()) {
    lane = find();
  }
  const auto ended =
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& it) { return it.is_ended; });
  EBB_REQUIRE(lane < Stream::lanes, function, to_string(device_), " has ",
              std::to_string(Stream::lanes - 1),
              " streams already, the most that there may be at a time, ", std::to_string(ended),
              " of which were destroyed before their work was done: destroy those that are not "
              "used, synchronise() before, or use fewer");
  return lane;
}

void DeviceContext::destroy_stream(Stream stream) noexcept {
  const std::lock_guard lock(mutex_);
  if (stream.id == 0 || !knows(stream)) {
    return;
  }
  Lane& lane = lanes_[stream.lane()];
  lane.stream.store(0, std::memory_order_relaxed);
  lane.is_ended = true;
  if (is_lost()) {
    return leave(lane);
  }
  if (is_capturing() || lane.before_graph != 0) {
    return;  // what is recorded now is the graph's
  }
  try {
    record_locked(stream.lane());
  } catch (...) {
    // Without an event nobody knows when its work is done.
  }
}

// Those that had no event when they were to end. Not while a graph that has them is captured, whose
// events are never seen to be done.
void DeviceContext::end_ended_lanes() {
  if (is_capturing()) {
    return;
  }
  for (std::uint32_t lane = 1; lane < Stream::lanes; ++lane) {
    const Lane& it = lanes_[lane];
    if (it.is_known && it.is_ended && !it.is_leaving && it.before_graph == 0) {
      record_locked(lane);
    }
  }
}

// What was queued has an event, or nobody will ask for one.
void DeviceContext::leave(Lane& lane) noexcept {
  lane.is_leaving = true;
  backend_->destroy_stream({device_, lane.queue});
}

bool DeviceContext::knows(Stream stream) const noexcept {
  return stream.device == device_ &&
         lanes_[stream.lane()].stream.load(std::memory_order_relaxed) == stream.id;
}

void DeviceContext::require(Stream stream, const char* function) const {
  EBB_REQUIRE(knows(stream), function, "there is no stream ", std::to_string(stream.id), " on ",
              to_string(device_), ": it was destroyed, or is another runtime's");
}

void* DeviceContext::handle_of(Stream stream) {
  require(stream, "DeviceContext::handle_of");
  return watched("DeviceContext::handle_of", [&] { return backend_->handle_of(stream); });
}

void DeviceContext::copy(void* to, const void* from, Bytes bytes, Stream stream) {
  require(stream, "DeviceContext::copy");
  watched("DeviceContext::copy", [&] { backend_->copy(to, from, bytes, stream); });
}

void DeviceContext::copy_rows(void* to, const void* from, const CopyRows& rows, Stream stream) {
  require(stream, "DeviceContext::copy_rows");
  watched("DeviceContext::copy_rows", [&] { backend_->copy_rows(to, from, rows, stream); });
}

void DeviceContext::fill(void* to, FillPattern pattern, std::size_t count, Stream stream) {
  require(stream, "DeviceContext::fill");
  watched("DeviceContext::fill", [&] { backend_->fill(to, pattern, count, stream); });
}

void DeviceContext::call(void (*function)(void* context), void* context, Stream stream) {
  require(stream, "DeviceContext::call");
  watched("DeviceContext::call", [&] { backend_->call(function, context, stream); });
}

// The thread may ask the driver again. What was said of the order held in the graph only.
class DeviceContext::CaptureEnd {
 public:
  explicit CaptureEnd(DeviceContext& context) noexcept : context_(context) {}
  CaptureEnd(const CaptureEnd&) = delete;
  CaptureEnd& operator=(const CaptureEnd&) = delete;
  CaptureEnd(CaptureEnd&&) = delete;
  CaptureEnd& operator=(CaptureEnd&&) = delete;
  ~CaptureEnd() {
    const std::lock_guard lock(context_.mutex_);
    std::erase_if(context_.recorded_, [this](const Recorded& it) {
      if (it.is_captured) {
        context_.spare_events_.push_back(it.event);
      }
      return it.is_captured;
    });
    for (std::size_t lane = 0; lane < context_.before_capture_.size(); ++lane) {
      context_.lanes_[lane].after = context_.before_capture_[lane];
    }
    context_.before_capture_.clear();
    for (Lane& lane : context_.lanes_) {
      lane.before_graph = 0;
    }
    context_.beside_capture_ = 0;
    context_.capturer_.store({}, std::memory_order_relaxed);
  }

 private:
  DeviceContext& context_;
};

bool DeviceContext::begin_capture(Stream stream) {
  constexpr auto function = "DeviceContext::begin_capture";
  require(stream, function);
  return watched(function, [&] {
    const std::lock_guard lock(mutex_);
    if (capturer_.load(std::memory_order_relaxed) != std::thread::id{}) {
      return false;
    }
    before_capture_.reserve(lanes_.size());
    mark_captured(stream.lane());
    try {
      backend_->begin_capture(stream);
    } catch (...) {
      lanes_[stream.lane()].before_graph = 0;
      throw;
    }
    for (const Lane& lane : lanes_) {
      before_capture_.push_back(lane.after);
    }
    capturer_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    return true;
  });
}

void DeviceContext::join_capture(Stream stream) {
  if (!is_capturing()) [[likely]] {
    return;
  }
  watched("DeviceContext::join_capture", [&] {
    const std::lock_guard lock(mutex_);
    const auto is_captured = [](const Lane& it) { return it.before_graph != 0; };
    if (!is_captured(lanes_[stream.lane()])) {
      const auto any = std::find_if(lanes_.begin(), lanes_.end(), is_captured);
      wait_locked(stream, static_cast<std::uint32_t>(any - lanes_.begin()),
                  any->next.load(std::memory_order_relaxed));
    }
  });
}

// The driver refuses a graph with streams that the first one does not wait for. Returns the lanes
// of GraphExec::beside.
std::uint64_t DeviceContext::join_captured_lanes(Stream origin) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t lane = 0; lane < Stream::lanes; ++lane) {
    if (lane != origin.lane() && lanes_[lane].before_graph != 0) {
      wait_locked(origin, lane, lanes_[lane].next.load(std::memory_order_relaxed));
    }
  }
  return beside_capture_;
}

GraphExec DeviceContext::end_capture(Stream stream, GraphExec into) {
  return watched("DeviceContext::end_capture", [&] {
    const CaptureEnd end(*this);
    std::uint64_t beside = 0;
    try {
      beside = join_captured_lanes(stream);
    } catch (...) {
      backend_->abandon_capture(stream);
      throw;
    }
    return GraphExec{backend_->end_capture(stream, into).id, beside};
  });
}

void DeviceContext::abandon_capture(Stream stream) noexcept {
  const CaptureEnd end(*this);
  backend_->abandon_capture(stream);
}

void DeviceContext::launch(GraphExec graph, Stream stream) {
  require(stream, "DeviceContext::launch");
  for (std::uint64_t lanes = graph.beside; lanes != 0; lanes &= lanes - 1) {
    wait(stream, newest_of(static_cast<std::uint32_t>(std::countr_zero(lanes))));
  }
  watched("DeviceContext::launch", [&] { backend_->launch(graph, stream); });
  for (std::uint64_t lanes = graph.beside; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
    const Stream later{device_, lanes_[lane].stream.load(std::memory_order_relaxed)};
    if (later.lane() == lane) {  // else it has ended
      wait_unless_ended(later, newest(stream));
    }
  }
}

void DeviceContext::destroy_graph(GraphExec graph) noexcept {
  backend_->destroy_graph(graph);
}

void DeviceContext::require_no_capture(const char* function) const {
  EBB_REQUIRE(!is_capturing(), function,
              "nothing that is queued while a graph is captured runs before it is launched: wait "
              "for it, and read what it makes, after the captured step");
}

void DeviceContext::require_alive(const char* function) const {
  if (is_lost()) [[unlikely]] {
    throw DeviceError(function, loss_code_, to_string(device_),
                      "the device was lost before: " + loss_, true);
  }
}

void DeviceContext::note_loss(const DeviceError& error) noexcept {
  const std::lock_guard lock(loss_mutex_);
  if (!is_lost()) {
    loss_code_ = error.code();
    try {
      loss_ = error.what();
    } catch (const std::bad_alloc&) {  // said without the reason, then
    }
    is_lost_.store(true, std::memory_order_release);
  }
}

std::string DeviceContext::take_loss() noexcept {
  const std::lock_guard lock(loss_mutex_);
  return is_lost() && !std::exchange(is_loss_told_, true) ? loss_ : std::string();
}

}  // namespace ebb::inline v0
