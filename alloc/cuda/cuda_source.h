// SPDX-License-Identifier: Apache-2.0
// Pages of one CUDA device: addresses are reserved, pages of the driver's granularity are mapped on
// commit and unmapped on decommit. Used by heaps. Any thread: one lock. [alloc.cuda]
#pragma once

#include "cuda/driver.h"

#include <ebb/alloc/source.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ebb::inline v0 {

class CudaSource final : public Source {
 public:
  // Makes the device's context. Throws DeviceError.
  explicit CudaSource(Device device);

  Range reserve(Bytes bytes) noexcept override;
  void release(Range range) noexcept override;
  bool commit(Range range) noexcept override;
  void decommit(Range range) noexcept override;

  Bytes page_size() const noexcept override { return Bytes{page_bytes_}; }
  Device device() const noexcept override { return device_; }
  const char* name() const noexcept override { return name_.c_str(); }

 private:
  // Which pages of a reserved range are mapped.
  using Mapped = std::vector<bool>;

  Mapped& mapped_of(const std::byte* begin, std::size_t& page) noexcept;
  bool map_page(CUdeviceptr address) noexcept;

  const Device device_;
  const std::string name_;
  DriverMemory driver_;
  CUmemAllocationProp prop_{};
  std::size_t page_bytes_ = 0;
  std::mutex mutex_;
  std::map<const std::byte*, Mapped> reserved_;  // by begin
};

}  // namespace ebb::inline v0
