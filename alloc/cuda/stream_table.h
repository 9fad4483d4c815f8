// SPDX-License-Identifier: Apache-2.0
// The driver's handles of one device's streams, by ebb's numbers. Used by the CUDA backend. Any
// thread; looking one up takes no lock.
#pragma once

#include <ebb/alloc/stream.h>

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace ebb::inline v0 {

class StreamTable {
 public:
  // Returns the handle, null for the default stream. Throws std::invalid_argument for a stream that
  // is not here.
  cudaStream_t find(Stream stream, const char* function) const;
  // The same without a word: null for a stream that is not here.
  cudaStream_t peek(Stream stream) const noexcept;
  // Throws std::invalid_argument where the stream's lane is taken.
  void add(Stream stream, cudaStream_t handle, bool is_borrowed, const char* function);
  // Forgets a stream. Returns its handle if it is to be destroyed, else null.
  cudaStream_t remove(Stream stream) noexcept;
  // The same for whatever stream has the lane.
  cudaStream_t remove_lane(std::uint32_t lane) noexcept;

 private:
  struct Lane {
    // 0 where there is none. Release and acquire: who reads a number sees the handle that belongs
    // to it. A lane that gets another stream meanwhile is the caller's mistake, who has destroyed
    // what it uses.
    std::atomic<std::uint32_t> id{0};
    std::atomic<cudaStream_t> handle{nullptr};
    bool is_borrowed = false;
  };

  cudaStream_t clear(Lane& lane) noexcept;

  std::mutex mutex_;  // for those who write
  std::array<Lane, Stream::lanes> lanes_;
};

}  // namespace ebb::inline v0
