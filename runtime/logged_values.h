// SPDX-License-Identifier: Apache-2.0
// What the iterations of a loop log, by name, and values of devices that are still to arrive.
// Private to runtime. Any thread: one lock. [rt.loop]
#pragma once

#include <ebb/alloc/stream.h>
#include <ebb/runtime/loop.h>
#include <ebb/runtime/tensor.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0::detail {

class LoggedValues {
 public:
  void add(std::string_view name, double value);
  // The same for the one element of a tensor on a device, once the device has copied it; nothing of
  // the tensor is kept alive. Blocks only where so many are to arrive that the oldest must first.
  // Throws DeviceError then, and std::invalid_argument for another number of elements.
  void add_later(std::string_view name, const Tensor& value);
  // Those that have arrived; from a lost device none does any more. Throws DeviceError.
  std::vector<LoggedValue> values();
  void reset() noexcept;
  // Waits until all have arrived. Throws DeviceError when that takes too long.
  void finish();

 private:
  struct Entry {
    std::string name;
    double last = 0;
    double sum = 0;
    std::uint64_t count = 0;

    void add(double value) noexcept;
  };
  struct Coming {
    std::size_t entry = 0;  // its index
    Tensor landing;         // one element of pinned memory; undefined: none comes here
    StreamPoint point;
  };
  static constexpr std::size_t coming_most = 256;

  // With the lock held.
  std::size_t find(std::string_view name);
  void take_arrived();
  void take_oldest();
  void drop_oldest() noexcept;
  void wait_for_oldest();

  std::mutex mutex_;  // guards what follows
  std::vector<Entry> entries_;
  std::vector<Coming> coming_;  // a ring, made when first needed
  std::size_t oldest_ = 0;
  std::size_t count_ = 0;
};

}  // namespace ebb::inline v0::detail
