// SPDX-License-Identifier: Apache-2.0
// Pages of one CUDA device: addresses are reserved, pages of the driver's granularity are mapped on
// commit and unmapped on decommit. Used by heaps. Any thread. [alloc.cuda]
#pragma once

#include "cuda/context.h"
#include "cuda/page_record.h"

#include <ebb/alloc/source.h>

#include <string>

namespace ebb::inline v0 {

// What the driver maps and unmaps is no work of any context, so none is made current. Pages are the
// own device's; other devices reach them by copies between devices only.
class CudaSource final : public Source {
 public:
  // context must outlive it. Throws DeviceError.
  explicit CudaSource(const CudaContext& context);

  Range reserve(Bytes bytes) noexcept override;
  void release(Range range) noexcept override;
  bool commit(Range range) noexcept override;
  void decommit(Range range) noexcept override;

  Bytes page_size() const noexcept override { return Bytes{page_bytes_}; }
  Device device() const noexcept override { return context_.device(); }
  const char* name() const noexcept override { return name_.c_str(); }

  // Whether address is one of those that were reserved here.
  bool holds(const void* address) const noexcept { return pages_.holds(address); }

 private:
  bool map_page(std::byte* begin) noexcept;

  const CudaContext& context_;
  const std::string name_;
  const CUmemAllocationProp prop_;
  const std::size_t page_bytes_;
  PageRecord pages_;
};

}  // namespace ebb::inline v0
