// SPDX-License-Identifier: Apache-2.0
// The streams of simulated devices by number and by handle, and the pace of those to come. Any
// thread. [alloc.sim]
#pragma once

#include "sim/call_gate.h"
#include "sim/queue.h"

#include <ebb/alloc/fork.h>
#include <ebb/alloc/stream.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace ebb::inline v0 {

using SimQueuePtr = std::shared_ptr<SimQueue>;

class SimStreams {
 public:
  SimStreams(unsigned devices, const std::shared_ptr<CallGate>& gate);
  SimStreams(const SimStreams&) = delete;
  SimStreams& operator=(const SimStreams&) = delete;
  SimStreams(SimStreams&&) = delete;
  SimStreams& operator=(SimStreams&&) = delete;
  // Drops what is queued. Returns within ten seconds, whatever host functions do.
  ~SimStreams();

  // While it is held what at() returned stays. Readers are not ordered with each other by it.
  std::shared_lock<std::shared_mutex> reading() const { return std::shared_lock(mutex_); }
  // Throws std::invalid_argument for a stream that is not known. Within reading().
  const SimQueuePtr& at(Stream stream, const char* function) const;

  void make(Stream stream);
  // handle: of a stream that lives, or null for the default one.
  void borrow(Stream stream, void* handle);
  // Returns whether it was known.
  bool remove(Stream stream) noexcept;
  void* make_host_stream(Device device);
  // Besides the default ones.
  std::uint64_t count() const;

  // ---- pace, also of the streams to come ----
  void hold_all(bool is_held);
  void set_delay_all(std::chrono::microseconds delay);
  void set_lag_all(std::chrono::microseconds lag);
  // Whether nothing is queued; order as in SimQueue::is_idle.
  bool is_idle(std::memory_order order) const;

 private:
  struct Known {
    SimQueuePtr queue;
    std::uint32_t lane = 0;
    bool is_made = false;  // by make(): ends when it is removed
  };

  SimQueuePtr make_queue(Device device, std::uint32_t lane) const;
  SimQueuePtr find_handle(Device device, const void* handle) const;
  void join_leaving();
  void for_each(const std::function<void(const Known&)>& visit) const;
  std::int64_t lag_of(std::uint32_t lane) const { return lag_us_ * (1 + lane % 4) / 4; }

  const detail::ForkMark mark_;
  const std::shared_ptr<CallGate> gate_;
  mutable std::shared_mutex mutex_;  // guards what follows
  std::vector<Known> defaults_;      // by device
  std::unordered_map<std::uint32_t, Known> known_;
  std::vector<Known> host_;
  std::vector<Known> leaving_;  // removed, and working on
  bool all_held_ = false;
  std::int64_t delay_us_ = 0;
  std::int64_t lag_us_ = 0;
};

}  // namespace ebb::inline v0
