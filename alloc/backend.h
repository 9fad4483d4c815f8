// SPDX-License-Identifier: Apache-2.0
// What ebb needs of a device's driver: pages, streams, events, copies. One implementation is picked
// by the build (cuda/ or no_cuda/); the simulated device implements the same. Any thread.
#pragma once

#include <ebb/alloc/devices.h>
#include <ebb/alloc/error.h>
#include <ebb/alloc/source.h>
#include <ebb/alloc/stream.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// A point in a stream's work. Numbers are ebb's own and never reused in a process; 0 is no event.
struct Event {
  std::uint64_t id = 0;

  constexpr bool operator==(const Event&) const = default;
};

// Streams and events are known by number, so that a driver's handle that comes back for another
// stream is never mistaken. Calls that fail throw DeviceError; a stream or event that the backend
// does not know is std::invalid_argument. Destroying the backend destroys all that it made.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  Backend(Backend&&) = delete;
  Backend& operator=(Backend&&) = delete;
  virtual ~Backend() = default;

  // Returns the devices besides the CPU.
  virtual std::vector<DeviceInfo> devices() = 0;
  // Returns why there are none, or an empty string.
  virtual std::string missing() = 0;

  // Returns the source of a device's pages, which lives as long as the backend. The first call for
  // a device makes its context.
  virtual Source& source(Device device) = 0;

  virtual Stream make_stream(Device device) = 0;
  // Does not wait for the stream's work. Id 0, the default stream, cannot be destroyed.
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual void synchronise(Stream stream) = 0;

  // Returns an event that is done when all work now queued on stream is.
  virtual Event record(Stream stream) = 0;
  virtual bool is_done(Event event) = 0;
  // Makes later work on stream wait for event, without blocking the caller.
  virtual void wait(Stream stream, Event event) = 0;
  virtual void synchronise(Event event) = 0;
  virtual void release(Event event) noexcept = 0;

  // Queues a copy on stream. Either side may be host memory; pageable host memory may make the call
  // block.
  virtual void copy(void* to, const void* from, Bytes bytes, Stream stream) = 0;
};

// Returns a new backend of the kind that this build has. Never null; works without a driver.
std::unique_ptr<Backend> make_backend();

// Returns a number for a new stream or event, never one that was returned before.
std::uint32_t next_stream_id() noexcept;
std::uint64_t next_event_id() noexcept;

}  // namespace ebb::inline v0
