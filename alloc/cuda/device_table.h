// SPDX-License-Identifier: Apache-2.0
// The CUDA devices that are in use: of each its context, streams and pages. Used by the CUDA
// backend and its copies. Any thread; looking one up takes no lock.
#pragma once

#include "cuda/context.h"
#include "cuda/cuda_source.h"
#include "cuda/pinned_source.h"
#include "cuda/stream_table.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

namespace ebb::inline v0 {

struct CudaDevice {
  const CudaContext context;
  CudaSource pages{context};
  PinnedSource pinned{context};
  StreamTable streams;

  // Makes the device's context. Throws DeviceError.
  explicit CudaDevice(Device device) : context(device) {}
};

class DeviceTable {
 public:
  DeviceTable() = default;
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;
  DeviceTable(DeviceTable&&) = delete;
  DeviceTable& operator=(DeviceTable&&) = delete;
  ~DeviceTable();

  // Returns a device; one that was not in use is from now on. Throws std::invalid_argument for one
  // that is not CUDA's, else DeviceError.
  CudaDevice& get(Device device, const char* function);
  // Returns a device that is in use, else null.
  CudaDevice* find(Device device) const noexcept;
  // Returns the device whose pages address lies in, null where it lies in none of ours.
  const CudaDevice* holder_of(const void* address) const noexcept;
  // Whether address lies in pinned pages of ours.
  bool is_pinned(const void* address) const noexcept;
  template <class F>
  void for_each(F f) const {
    for (const std::atomic<CudaDevice*>& entry : devices_) {
      if (CudaDevice* const device = entry.load(std::memory_order_acquire)) {
        f(*device);
      }
    }
  }
  bool has_several() const noexcept { return count_.load(std::memory_order_acquire) > 1; }

 private:
  // More than any machine has.
  static constexpr std::size_t devices_max = 64;

  std::mutex mutex_;  // for those who write
  // Set once, by release; acquired by who reads.
  std::array<std::atomic<CudaDevice*>, devices_max> devices_{};
  std::atomic<std::size_t> count_{0};
};

}  // namespace ebb::inline v0
