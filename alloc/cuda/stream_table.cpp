// SPDX-License-Identifier: Apache-2.0
// One entry a lane, checked by the number. Any thread.
#include "cuda/stream_table.h"

#include <ebb/alloc/check.h>

namespace ebb::inline v0 {

cudaStream_t StreamTable::find(Stream stream, const char* function) const {
  if (stream.id == 0) {
    return nullptr;
  }
  const Lane& lane = lanes_[stream.lane()];
  EBB_REQUIRE(lane.id.load(std::memory_order_acquire) == stream.id, function,
              to_string(stream.device), " has no stream ", std::to_string(stream.id));
  return lane.handle.load(std::memory_order_relaxed);
}

cudaStream_t StreamTable::peek(Stream stream) const noexcept {
  const Lane& lane = lanes_[stream.lane()];
  return stream.id != 0 && lane.id.load(std::memory_order_acquire) == stream.id
             ? lane.handle.load(std::memory_order_relaxed)
             : nullptr;
}

void StreamTable::add(Stream stream, cudaStream_t handle, bool is_borrowed, const char* function) {
  EBB_REQUIRE(stream.lane() != 0, function, "lane 0 is the default stream's");
  Lane& lane = lanes_[stream.lane()];
  const std::lock_guard lock(mutex_);
  EBB_REQUIRE(lane.id.load(std::memory_order_relaxed) == 0, function, "lane ",
              std::to_string(stream.lane()), " of ", to_string(stream.device), " is taken");
  lane.handle.store(handle, std::memory_order_relaxed);
  lane.is_borrowed = is_borrowed;
  lane.id.store(stream.id, std::memory_order_release);
}

cudaStream_t StreamTable::remove(Stream stream) noexcept {
  Lane& lane = lanes_[stream.lane()];
  const std::lock_guard lock(mutex_);
  return stream.id != 0 && lane.id.load(std::memory_order_relaxed) == stream.id ? clear(lane)
                                                                                : nullptr;
}

cudaStream_t StreamTable::remove_lane(std::uint32_t lane) noexcept {
  const std::lock_guard lock(mutex_);
  return clear(lanes_[lane]);
}

// With the lock held.
cudaStream_t StreamTable::clear(Lane& lane) noexcept {
  lane.id.store(0, std::memory_order_relaxed);
  cudaStream_t handle = lane.handle.exchange(nullptr, std::memory_order_relaxed);
  return lane.is_borrowed ? nullptr : handle;
}

}  // namespace ebb::inline v0
