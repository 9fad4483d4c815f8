// SPDX-License-Identifier: Apache-2.0
// What ebb needs of a device's driver: pages, streams, events, copies, graphs. cuda/ or no_cuda/
// is picked by the build, and sim/ does the same on host memory. Any thread. [alloc.cuda]
// [alloc.sim]
#pragma once

#include <ebb/alloc/device_work.h>
#include <ebb/alloc/devices.h>
#include <ebb/alloc/error.h>
#include <ebb/alloc/source.h>
#include <ebb/alloc/stream.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// A point in a stream's work, recorded again and again. Numbers are ebb's own and never reused in a
// process; 0 is no event.
struct Event {
  std::uint64_t id = 0;

  constexpr bool operator==(const Event&) const = default;
};

// Streams, events and graphs are known by number, so that a driver's handle that comes back for
// another one is never mistaken. Calls that fail throw DeviceError; what the backend does not know
// is std::invalid_argument. Nothing blocks until a device is done, but a copy from or to pageable
// host memory may. Destroying the backend destroys all that it made, and nothing that was borrowed.
// Once the driver has shut down, destruction and what is noexcept do nothing.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  Backend(Backend&&) = delete;
  Backend& operator=(Backend&&) = delete;
  virtual ~Backend() = default;

  // Returns the devices besides the CPU. Makes no context on any.
  virtual std::vector<DeviceInfo> devices() = 0;
  // Returns why there are none, or an empty string.
  virtual std::string missing() = 0;

  // Returns the source of a device's pages, and of host pages that its copies need not block for
  // (their Source::device() is the CPU). They live as long as the backend. The first call for a
  // device makes its context.
  virtual Source& source(Device device) = 0;
  virtual Source& pinned(Device device) = 0;

  // Makes a stream that is known by the number in stream, which the caller has from
  // next_stream_id() and gives no other. It does not wait for the default stream.
  virtual void make_stream(Stream stream) = 0;
  // The same for a stream of the host's, which lives at least as long as it is known here.
  virtual void borrow_stream(Stream stream, void* handle) = 0;
  // Forgets a stream, and destroys it if the backend has made it: its work goes on to its end. Id
  // 0, the default stream, is always known.
  virtual void destroy_stream(Stream stream) noexcept = 0;
  // Returns the driver's handle: a cudaStream_t, or what the simulated device calls one.
  virtual void* handle_of(Stream stream) = 0;

  // An event that was never recorded is done.
  virtual Event make_event(Device device) = 0;
  virtual void destroy_event(Event event) noexcept = 0;
  // From now on event is done when all work now queued on stream is.
  virtual void record(Event event, Stream stream) = 0;
  virtual bool is_done(Event event) = 0;
  // Makes later work on stream wait for event as it was recorded last, without blocking the caller.
  virtual void wait(Stream stream, Event event) = 0;

  // Queued on stream. Either side may be host memory, or on another device.
  virtual void copy(void* to, const void* from, Bytes bytes, Stream stream) = 0;
  virtual void copy_rows(void* to, const void* from, const CopyRows& rows, Stream stream) = 0;
  // Writes pattern count times, on the stream's device.
  virtual void fill(void* to, FillPattern pattern, std::size_t count, Stream stream) = 0;
  // Runs function on some thread once the stream's work before it is done; work after it waits for
  // it. It must call no driver function.
  virtual void call(void (*function)(void* context), void* context, Stream stream) = 0;

  // From now on the calling thread's work on stream, and on streams that wait for its events, is
  // collected instead of run. What would have to run at once (pages, queries, blocking copies)
  // fails on this thread meanwhile, and spoils the capture.
  virtual void begin_capture(Stream stream) = 0;
  // Ends it, on the same thread. Returns into if the work has its shape and it could be changed in
  // place, else a new graph; throws when the capture was spoilt, or streams were left unjoined.
  virtual GraphExec end_capture(Stream stream, GraphExec into) = 0;
  virtual void abandon_capture(Stream stream) noexcept = 0;
  // Queues the work of graph. Its memory must be what it was when it was captured.
  virtual void launch(GraphExec graph, Stream stream) = 0;
  virtual void destroy_graph(GraphExec graph) noexcept = 0;
};

// Returns a new backend of the kind that this build has. Never null; works without a driver.
std::unique_ptr<Backend> make_backend();

// Returns an id for a new stream in a lane, never one that was returned before.
std::uint32_t next_stream_id(std::uint32_t lane) noexcept;
// Returns a number for a new event or graph, never one that was returned before.
std::uint64_t next_event_id() noexcept;

}  // namespace ebb::inline v0
