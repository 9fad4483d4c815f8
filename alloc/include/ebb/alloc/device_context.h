// SPDX-License-Identifier: Apache-2.0
// One device of a runtime besides the CPU: its streams and the order between them, its pages, and
// what is queued on it. For ebb's modules only: not installed. Any thread. [alloc.cuda] [rt.stream]
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/device_work.h>
#include <ebb/alloc/source.h>
#include <ebb/alloc/stream.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ebb::inline v0 {

class Backend;
class DeviceError;

// Points are numbered per lane. Memory that a stream has done with is known by the point that the
// next event on it will have: who comes after that may have it. "After" is known without asking the
// driver: on the same lane; where one waited for the other, by way of others too; and once an event
// was seen to be done.
//
// What fails throws DeviceError. Once that says that the device is lost, every call does, and what
// is noexcept does nothing.
class DeviceContext {
 public:
  // Makes no context of the driver's yet.
  DeviceContext(Device device, std::shared_ptr<Backend> backend);
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;
  DeviceContext(DeviceContext&&) = delete;
  DeviceContext& operator=(DeviceContext&&) = delete;
  ~DeviceContext();

  Device device() const noexcept { return device_; }
  Stream default_stream() const noexcept { return {device_, 0}; }
  // Pages of the device, and host pages that copies do not block for.
  Source& pages();
  Source& pinned();

  // Throws std::invalid_argument where 63 are alive.
  Stream make_stream();
  // For a stream of the host's, which outlives its being known here.
  Stream borrow_stream(void* handle);
  // Forgets a stream: what was queued goes on, and its memory is free once that is done.
  void destroy_stream(Stream stream) noexcept;
  bool knows(Stream stream) const noexcept;
  // Throws std::invalid_argument for a stream that is not this device's, or was destroyed.
  void require(Stream stream, const char* function) const;
  void* handle_of(Stream stream);

  // ---- order ----
  // Returns the point that the next event of a lane will have. It covers all that has been queued,
  // by this thread or by one that this thread has heard from since.
  std::uint64_t next_point(std::uint32_t lane) const noexcept {
    // Sequentially consistent with record(), which counts on before it asks the driver.
    return lanes_[lane].next.load(std::memory_order_seq_cst);
  }
  // Records an event, and returns its point.
  StreamPoint record(Stream stream);
  // Has what is queued on later from now on wait for the point, or for all that is queued on
  // earlier by now, without blocking. Nothing where it comes after that anyway.
  void wait(Stream later, StreamPoint point);
  void wait(Stream later, Stream earlier) { wait(later, newest(earlier)); }
  // The same, but nothing for a stream that has ended: it gets no more work.
  void wait_unless_ended(Stream later, StreamPoint point);
  // Returns the point that covers all that is queued on stream by now; it may have no event yet.
  StreamPoint newest(Stream stream) const noexcept { return {stream, next_point(stream.lane())}; }
  // The same by lane, which is all that wait() looks at.
  StreamPoint newest_of(std::uint32_t lane) const noexcept {
    return {{device_, lane}, next_point(lane)};
  }
  // Whether what is queued on later from now on comes after the point, as far as is known.
  bool is_after(std::uint32_t later, std::uint32_t earlier, std::uint64_t number) noexcept;
  // Whether the device has come past the point, as far as is known.
  bool is_over(std::uint32_t lane, std::uint64_t number) const noexcept;
  // Asks the driver which events are done. Returns whether any is that was not before. Nothing on a
  // thread that captures.
  bool poll() noexcept;
  // Whether the device has come past the point: asks the driver, and records the event where there
  // is none yet.
  bool is_done(StreamPoint point);
  // Waits for that, by polling; false: not before the deadline.
  bool wait_until(StreamPoint point, std::chrono::steady_clock::time_point deadline);
  // The same for all that is queued on all streams.
  bool wait_for_all(std::chrono::steady_clock::time_point deadline);

  // ---- queued on a stream ----
  void copy(void* to, const void* from, Bytes bytes, Stream stream);
  void copy_rows(void* to, const void* from, const CopyRows& rows, Stream stream);
  void fill(void* to, FillPattern pattern, std::size_t count, Stream stream);
  void call(void (*function)(void* context), void* context, Stream stream);

  // ---- graphs ----
  // What this thread queues from now on is collected. Waits for what is not are left out of the
  // graph, and so is what waits for it: launch() has it in order. False: something is captured on
  // the device already.
  bool begin_capture(Stream stream);
  GraphExec end_capture(Stream stream, GraphExec into);
  void abandon_capture(Stream stream) noexcept;
  // Where this thread captures, what it queues on stream from now on is part of the graph.
  void join_capture(Stream stream);
  // After what the other streams that the graph has to do with were given by now, and before what
  // they are given later.
  void launch(GraphExec graph, Stream stream);
  void destroy_graph(GraphExec graph) noexcept;
  // Whether this thread captures on this device: nothing may be mapped, waited for or asked.
  bool is_capturing() const noexcept {
    return capturer_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // Throws std::invalid_argument where it does.
  void require_no_capture(const char* function) const;

  // Throws DeviceError once the device is lost.
  void require_alive(const char* function) const;
  bool is_lost() const noexcept { return is_lost_.load(std::memory_order_acquire); }
  // The driver's code, once it is.
  int loss_code() const noexcept { return loss_code_; }
  // Returns why, once: for whoever logs it.
  std::string take_loss() noexcept;

 private:
  // The last point of each lane that something comes after.
  using VectorClock = std::array<std::uint64_t, Stream::lanes>;
  struct Lane {
    std::atomic<std::uint64_t> next{1};    // number of an event; counted on under the lock
    std::atomic<std::uint32_t> stream{0};  // its id for users; relaxed, written under the lock
    std::uint32_t queue = 0;               // its id at the backend
    bool is_known = false;
    bool is_ended = false;    // for users; its next event is the last, and then the backend's ends
    bool is_leaving = false;  // that was recorded; the lane is free once it is done
    std::uint64_t done = 0;   // all up to this one were seen to be done
    // The last point before what a graph that is captured has of it; 0: it is in none.
    std::uint64_t before_graph = 0;
    VectorClock after{};
  };
  struct Recorded {
    std::uint32_t lane;
    bool is_captured;  // in a graph: the driver is never asked for it
    std::uint64_t number;
    std::uint64_t event;  // the backend's
    VectorClock before;
  };
  // Ends what begin_capture began.
  class CaptureEnd;

  // What throws DeviceError otherwise than f does when the device is lost, and notes that it is.
  template <class F>
  auto watched(const char* function, F f) -> decltype(f());
  void note_loss(const DeviceError& error) noexcept;
  template <class Make>
  Stream open_lane(const char* function, Make make);
  std::uint32_t free_lane(const char* function);

  // With the lock held.
  bool poll_locked();
  // What another thread captures would have what is recorded, or waited for, in its graph.
  bool is_others_capture(std::uint32_t lane) const noexcept {
    return lanes_[lane].before_graph != 0 && !is_capturing();
  }
  void require_not_others_capture(std::uint32_t lane, const char* function) const;
  void free_left_lanes() noexcept;
  void leave(Lane& lane) noexcept;
  void end_ended_lanes();
  void wait_locked(Stream later, std::uint32_t lane, std::uint64_t number);
  bool is_outside_capture(std::uint32_t later, std::uint32_t earlier, std::uint64_t number);
  std::uint64_t join_captured_lanes(Stream origin);
  std::uint64_t record_locked(std::uint32_t index);
  void mark_captured(std::uint32_t index);
  const Recorded* event_after(std::uint32_t lane, std::uint64_t number) const noexcept;
  // The number that stands for a point of a lane, whose stream may be gone, or captured by another
  // thread.
  std::uint64_t covered(std::uint32_t index, std::uint64_t number) const noexcept;
  bool is_after_locked(std::uint32_t later, std::uint32_t earlier,
                       std::uint64_t number) const noexcept;
  std::optional<StreamPoint> last_of(std::uint32_t index) const noexcept;

  const Device device_;
  const std::shared_ptr<Backend> backend_;
  // Relaxed: a thread compares it with itself only.
  std::atomic<std::thread::id> capturer_{};
  mutable std::mutex mutex_;  // guards the next five but for their atomics
  std::array<Lane, Stream::lanes> lanes_;
  std::vector<Recorded> recorded_;           // by lane in the order of their numbers
  std::vector<std::uint64_t> spare_events_;  // the backend's; has room for those in recorded_
  std::vector<VectorClock> before_capture_;  // what each lane came after then
  std::uint64_t beside_capture_ = 0;         // GraphExec::beside of what is captured now

  // Release and acquire: who sees it set may read the next two, which do not change any more.
  std::atomic<bool> is_lost_{false};
  std::mutex loss_mutex_;  // guards the writing of the next three
  int loss_code_ = 0;
  std::string loss_;
  bool is_loss_told_ = false;
};

}  // namespace ebb::inline v0
