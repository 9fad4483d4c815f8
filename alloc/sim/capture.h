// SPDX-License-Identifier: Apache-2.0
// Captures of a machine's streams: what is queued on them is collected, and what CUDA forbids
// meanwhile spoils them. Callers only, any thread. [alloc.sim] [alloc.graph]
#pragma once

#include "sim/call_gate.h"
#include "sim/queue.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace ebb::inline v0 {

struct SimNode {
  SimCall kind;
  SimWork work;
  std::vector<std::uint32_t> after;  // nodes that come before it
};
using SimNodes = std::vector<SimNode>;

// Where an event was recorded in a capture.
struct SimCapturedPoint {
  std::uint64_t capture = 0;
  std::set<std::uint32_t> after;  // nodes
};

class SimCaptures {
 public:
  void begin(SimQueue& origin);
  // Throws where the capture was spoilt, or is another thread's; but then it stays.
  SimNodes end(SimQueue& origin);
  void abandon(const SimQueue& origin) noexcept;

  // Whether the queue is captured, and the work is taken from it.
  bool collect(const SimQueue& queue, SimCall call, const SimWork& work);
  // Returns nothing where the queue is not captured.
  std::optional<SimCapturedPoint> record(const SimQueue& queue);
  // The queue, captured or not, comes after the point, and is captured from now on.
  void join(const SimQueue& queue, const SimCapturedPoint& point);
  // For a wait for what is outside of all captures.
  void forbid_wait(const SimQueue& queue);
  // For what may not be called where this thread captures on the device, whatever the stream.
  void forbid(SimCall call, Device device);
  bool try_forbid(Device device) noexcept;

 private:
  using Frontier = std::set<std::uint32_t>;
  struct Capture {
    std::uint64_t serial;
    const SimQueue* origin;
    std::thread::id thread;
    SimNodes nodes;
    std::map<const SimQueue*, Frontier> queues;  // what comes after what is queued next
    bool is_spoilt = false;

    bool all_joined() const;
  };

  bool none() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
  // Returns the capture of a queue, or null. Throws for another thread than the capture's.
  Capture* find(const SimQueue& queue, SimCall call);
  Capture* of_thread(Device device) noexcept;
  [[noreturn]] static void spoil(Capture& capture, SimCall call, int code);
  void erase(const Capture* capture) noexcept;

  // Relaxed: a thread needs to see its own captures only, and others only where it is ordered
  // after them.
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;  // guards what follows; taken only while there are captures
  std::uint64_t last_serial_ = 0;
  std::vector<std::unique_ptr<Capture>> captures_;
};

// Whether one graph can be changed into the other in place.
bool have_same_shape(const SimNodes& a, const SimNodes& b);

}  // namespace ebb::inline v0
