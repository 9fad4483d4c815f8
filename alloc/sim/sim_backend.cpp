// SPDX-License-Identifier: Apache-2.0
// The calls of the simulated driver: each passes the gate, and is queued or collected. Any thread.
#include "sim/sim_backend.h"

#include <ebb/alloc/check.h>

#include <chrono>
#include <utility>

#include <unistd.h>

namespace ebb::inline v0 {

namespace {

bool is_told(const SimMark& mark) {
  // Acquired only where it is told: "not yet" orders nothing.
  if (!mark.is_done.load(std::memory_order_relaxed)) {
    return false;
  }
  const std::int64_t from = mark.told_from.load(std::memory_order_relaxed);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return (from == 0 || std::chrono::nanoseconds(now).count() >= from) &&
         mark.is_done.load(std::memory_order_acquire);
}

// The bytes from the first row's begin to the last one's end.
std::size_t extent(const CopyRows& rows, std::size_t pitch) {
  return rows.rows == 0 ? 0 : (Bytes{pitch} * (rows.rows - 1) + rows.width).count();
}

}  // namespace

SimBackend::SimBackend(const SimOptions& options, int pattern)
    : options_(options),
      pattern_(pattern),
      gate_(std::make_shared<CallGate>(options.devices)),
      devices_(options.devices),
      streams_(options.devices, gate_) {
  const SimMemoryParts parts{*gate_, captures_, addresses_};
  for (unsigned index = 0; index < options.devices; ++index) {
    const Device device{DeviceKind::sim, index};
    const std::size_t page = options.page.count();
    devices_[index].pages = std::make_unique<SimSource>(
        parts, SimRange::Use{device, false, page, pattern}, options.memory);
    devices_[index].pinned = std::make_unique<SimSource>(
        parts, SimRange::Use{device, true, page, -1}, options.pinned_memory);
  }
}

SimBackend::~SimBackend() {
  ::close(pattern_);
}

// ---- devices ----

std::vector<DeviceInfo> SimBackend::devices() {
  std::vector<DeviceInfo> list;
  for (unsigned index = 0; index < options_.devices && !gate_->is_down(); ++index) {
    list.push_back({{DeviceKind::sim, index}, "simulated device", options_.memory});
  }
  return list;
}

std::string SimBackend::missing() {
  return gate_->is_down() ? "the simulated driver has shut down" : "";
}

Source& SimBackend::source(Device device) {
  gate_->require_own_process(SimCall::make_context);
  SimSource& pages = pages_of(device, "Backend::source");
  make_context(device);
  return pages;
}

Source& SimBackend::pinned(Device device) {
  gate_->require_own_process(SimCall::make_context);
  SimSource& pages = pinned_of(device, "Backend::pinned");
  make_context(device);
  return pages;
}

SimSource& SimBackend::pages_of(Device device, const char* function) {
  require_device(device, function);
  return *devices_[device.index].pages;
}

SimSource& SimBackend::pinned_of(Device device, const char* function) {
  require_device(device, function);
  return *devices_[device.index].pinned;
}

void SimBackend::require_device(Device device, const char* function) const {
  EBB_REQUIRE(device.kind == DeviceKind::sim && device.index < options_.devices, function,
              to_string(device), " is no device of this machine");
}

void SimBackend::make_context(Device device) {
  std::atomic<bool>& has_context = devices_[device.index].has_context;
  if (has_context.load(std::memory_order_relaxed)) {
    return;
  }
  const std::lock_guard lock(context_mutex_);
  if (!has_context.load(std::memory_order_relaxed)) {
    gate_->enter(SimCall::make_context, device);
    has_context.store(true, std::memory_order_relaxed);
  }
}

void SimBackend::enter(SimCall call, Device device, const char* function) {
  gate_->require_own_process(call);
  require_device(device, function);
  make_context(device);
  gate_->enter(call, device);
}

// ---- streams ----

void SimBackend::make_stream(Stream stream) {
  enter(SimCall::make_stream, stream.device, "Backend::make_stream");
  streams_.make(stream);
}

void SimBackend::borrow_stream(Stream stream, void* handle) {
  enter(SimCall::borrow_stream, stream.device, "Backend::borrow_stream");
  streams_.borrow(stream, handle);
}

void SimBackend::destroy_stream(Stream stream) noexcept {
  if (stream.device.index < options_.devices &&
      gate_->try_enter(SimCall::destroy_stream, stream.device)) {
    streams_.remove(stream);
  }
}

void* SimBackend::handle_of(Stream stream) {
  require_device(stream.device, "Backend::handle_of");
  const auto lock = streams_.reading();
  return streams_.at(stream, "Backend::handle_of").get();
}

// ---- events ----

Event SimBackend::make_event(Device device) {
  enter(SimCall::make_event, device, "Backend::make_event");
  return {events_.add(std::make_unique<SimEvent>(device))};
}

void SimBackend::destroy_event(Event event) noexcept {
  if (gate_->in_child()) {
    return;
  }
  const auto device = events_.device_of(event.id);
  if (device && gate_->try_enter(SimCall::destroy_event, *device)) {
    events_.remove(event.id);
  }
}

void SimBackend::record(Event event, Stream stream) {
  enter(SimCall::record, stream.device, "Backend::record");
  const auto streams_lock = streams_.reading();
  const SimQueuePtr& queue = streams_.at(stream, "Backend::record");
  const auto events_lock = events_.reading();
  SimEvent& known = events_.at(event.id, "Backend::record");
  EBB_REQUIRE(known.device == stream.device, "Backend::record", "the event is of ",
              to_string(known.device), ", the stream of ", to_string(stream.device));
  const std::lock_guard lock(known.mutex);
  known.captured = captures_.record(*queue);
  if (!known.captured) {
    auto mark = std::make_shared<SimMark>();
    // If that fails, the event is never done, which is safe.
    std::shared_ptr<SimMark> before = std::exchange(known.mark, mark);
    SimQueue::push(queue, {SimRecord{std::move(mark), std::move(before)}, {}});
  }
}

bool SimBackend::is_done(Event event) {
  gate_->require_own_process(SimCall::query);
  const auto events_lock = events_.reading();
  SimEvent& known = events_.at(event.id, "Backend::is_done");
  gate_->enter(SimCall::query, known.device);
  captures_.forbid(SimCall::query, known.device);
  const std::lock_guard lock(known.mutex);
  if (known.captured) {
    refuse(SimCall::query, {sim_error::captured_event}, known.device);
  }
  return known.mark == nullptr || is_told(*known.mark);
}

void SimBackend::wait(Stream stream, Event event) {
  enter(SimCall::wait, stream.device, "Backend::wait");
  const auto streams_lock = streams_.reading();
  const SimQueuePtr& queue = streams_.at(stream, "Backend::wait");
  const auto events_lock = events_.reading();
  SimEvent& known = events_.at(event.id, "Backend::wait");
  const std::lock_guard lock(known.mutex);
  if (known.captured) {
    captures_.join(*queue, *known.captured);
  } else if (known.mark != nullptr) {
    captures_.forbid_wait(*queue);
    SimQueue::push(queue, {SimWait{known.mark}, {}});
  }
}

// ---- work ----

void SimBackend::copy(void* to, const void* from, Bytes bytes, Stream stream) {
  enter(SimCall::copy, stream.device, "Backend::copy");
  queue_copy(SimCall::copy, {to, from, {bytes, 1, bytes.count(), bytes.count()}, {}}, stream);
}

void SimBackend::copy_rows(void* to, const void* from, const CopyRows& rows, Stream stream) {
  enter(SimCall::copy_rows, stream.device, "Backend::copy_rows");
  EBB_REQUIRE(rows.to_pitch >= rows.width.count() && rows.from_pitch >= rows.width.count(),
              "Backend::copy_rows", "a row is longer than the way to the next");
  queue_copy(SimCall::copy_rows, {to, from, rows, {}}, stream);
}

void SimBackend::queue_copy(SimCall call, SimCopy copy, Stream stream) {
  const CopyRows rows = copy.rows;
  auto target = addresses_.touch(copy.to, extent(rows, rows.to_pitch));
  auto origin = addresses_.touch(copy.from, extent(rows, rows.from_pitch));
  if (!target || !origin) {
    captures_.forbid(call, stream.device);
  }
  SimWork work{std::move(copy), {}};
  if (target) {
    work.touches.push_back(*target);
  }
  if (origin) {
    work.touches.push_back(*origin);
  } else {
    SimCopy& pageable = std::get<SimCopy>(work.what);
    pageable.staged = stage(pageable.from, rows);
  }
  submit(call, std::move(work), stream);
}

void SimBackend::fill(void* to, FillPattern pattern, std::size_t count, Stream stream) {
  enter(SimCall::fill, stream.device, "Backend::fill");
  const std::size_t width = pattern.width;
  EBB_REQUIRE(width == 1 || width == 2 || width == 4 || width == 8, "Backend::fill",
              "a pattern of ", std::to_string(width), " bytes");
  const auto target = addresses_.touch(to, (Bytes{width} * count).count());
  if (!target) {
    refuse(SimCall::fill, {sim_error::invalid_value}, stream.device);
  }
  submit(SimCall::fill, {SimFill{to, pattern, count}, {*target}}, stream);
}

void SimBackend::call(void (*function)(void* context), void* context, Stream stream) {
  enter(SimCall::call, stream.device, "Backend::call");
  submit(SimCall::call, {SimHostCall{function, context}, {}}, stream);
}

void SimBackend::submit(SimCall call, SimWork work, Stream stream) {
  const auto lock = streams_.reading();
  const SimQueuePtr& queue = streams_.at(stream, name_of(call));
  if (!captures_.collect(*queue, call, work)) {
    SimQueue::push(queue, std::move(work));
  }
}

// ---- graphs ----

void SimBackend::begin_capture(Stream stream) {
  enter(SimCall::begin_capture, stream.device, "Backend::begin_capture");
  if (stream.id == 0) {  // CUDA captures no legacy stream
    refuse(SimCall::begin_capture, {sim_error::capture_unsupported}, stream.device);
  }
  const auto lock = streams_.reading();
  captures_.begin(*streams_.at(stream, "Backend::begin_capture"));
}

GraphExec SimBackend::end_capture(Stream stream, GraphExec into) {
  try {
    enter(SimCall::end_capture, stream.device, "Backend::end_capture");
  } catch (...) {
    abandon_capture(stream);
    throw;
  }
  SimNodes nodes;
  {
    const auto lock = streams_.reading();
    nodes = captures_.end(*streams_.at(stream, "Backend::end_capture"));
  }
  if (into.id != 0) {
    const auto lock = graphs_.reading();
    SimGraph& known = graphs_.at(into.id, "Backend::end_capture");
    const std::lock_guard graph_lock(known.mutex);
    if (have_same_shape(known.nodes, nodes)) {
      known.nodes = std::move(nodes);
      return into;
    }
  }
  return {graphs_.add(std::make_unique<SimGraph>(stream.device, std::move(nodes)))};
}

void SimBackend::abandon_capture(Stream stream) noexcept {
  if (gate_->in_child()) {
    return;
  }
  try {
    const auto lock = streams_.reading();
    captures_.abandon(*streams_.at(stream, "Backend::abandon_capture"));
  } catch (const std::invalid_argument&) {
    // Then it is not captured.
  }
}

void SimBackend::launch(GraphExec graph, Stream stream) {
  enter(SimCall::launch, stream.device, "Backend::launch");
  const auto streams_lock = streams_.reading();
  const SimQueuePtr& queue = streams_.at(stream, "Backend::launch");
  const auto graphs_lock = graphs_.reading();
  SimGraph& known = graphs_.at(graph.id, "Backend::launch");
  if (captures_.record(*queue)) {
    captures_.forbid(SimCall::launch, stream.device);
  }
  const std::lock_guard lock(known.mutex);
  for (const SimNode& node : known.nodes) {
    SimQueue::push(queue, node.work);
  }
}

void SimBackend::destroy_graph(GraphExec graph) noexcept {
  if (gate_->in_child()) {
    return;
  }
  const auto device = graphs_.device_of(graph.id);
  if (device && gate_->try_enter(SimCall::destroy_graph, *device)) {
    graphs_.remove(graph.id);
  }
}

SimCounts SimBackend::counts() const {
  SimCounts counts;
  for (std::size_t call = 0; call < sim_calls; ++call) {
    counts.calls[call] = gate_->count(static_cast<SimCall>(call));
  }
  counts.streams = streams_.count();
  counts.events = events_.count();
  counts.graphs = graphs_.count();
  return counts;
}

}  // namespace ebb::inline v0
