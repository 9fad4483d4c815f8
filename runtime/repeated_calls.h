// SPDX-License-Identifier: Apache-2.0
// Host functions of a graph, which run each time that it is launched. Private to runtime. Added to
// by the thread that captures; they run on the driver's threads. [alloc.graph]
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <mutex>

namespace ebb::inline v0::detail {

class RepeatedCalls {
 public:
  // Returns what DeviceContext::call takes as context, with run() as function. Valid as long as
  // this.
  void* add(std::function<void()> function);
  static void run(void* opaque) noexcept;
  // Throws what a function has thrown first, once.
  void rethrow();

 private:
  struct Call {
    RepeatedCalls* calls;
    std::function<void()> function;
  };

  std::deque<Call> calls_;
  std::mutex mutex_;  // guards error_
  std::exception_ptr error_;
};

}  // namespace ebb::inline v0::detail
