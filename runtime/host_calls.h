// SPDX-License-Identifier: Apache-2.0
// Functions that wait in streams of devices to be run by the driver's threads. Private to runtime:
// one for each runtime. Thread-safe. [rt.stream]
#pragma once

#include "repeated_calls.h"

#include <ebb/alloc/stream.h>
#include <ebb/gc/clock.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/job.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

namespace detail {

class HostCalls : public std::enable_shared_from_this<HostCalls> {
 public:
  explicit HostCalls(std::shared_ptr<Domain> domain) noexcept : domain_(std::move(domain)) {}

  // Queues function as work of the current owner if that is of the domain. Throws as Domain::use,
  // and std::invalid_argument once the runtime has ended.
  void queue(Stream stream, std::function<void()> function);
  // From now on what is queued on the device by a thread that captures there is added to calls;
  // null ends that. One capture of a device at a time.
  void collect(Device device, RepeatedCalls* calls);
  // The runtime ends: waits until all have run, or so long. Those that have not by then never do,
  // and what they hold is left behind, since they may be the last to hold what a driver's thread
  // must not end.
  void end(Milliseconds patience) noexcept;

 private:
  struct Call;
  using Calls = std::list<Call>;
  struct Call {
    HostCalls* calls;  // which waits for this, or is left behind
    std::function<void()> function;
    Job job;
    Calls::iterator self;
  };

  static void run(void* opaque) noexcept;
  // Returns the call, to be run, or nothing once the runtime has ended.
  Calls take(Call& call) noexcept;
  RepeatedCalls* collecting(Device device) noexcept;
  void note_end() noexcept;

  const std::shared_ptr<Domain> domain_;
  std::mutex mutex_;  // guards what follows; changed_ is notified under it
  std::condition_variable changed_;
  Calls waiting_;
  std::size_t pending_ = 0;  // of those that wait or run
  bool ended_ = false;
  std::vector<std::pair<Device, RepeatedCalls*>> collecting_;
};

}  // namespace detail
}  // namespace ebb::inline v0
