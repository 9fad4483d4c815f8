// SPDX-License-Identifier: Apache-2.0
// Host pages that the devices copy from and to without blocking the caller. Used by heaps, and by
// copies, which ask where a registration ends. Any thread. [alloc.cuda]
#pragma once

#include "cuda/context.h"
#include "cuda/page_record.h"

#include <ebb/alloc/source.h>

#include <cstddef>

namespace ebb::inline v0 {

// Address space is the system's, and a page is registered with the driver on commit: that gives
// addresses before pages, zeros on fresh pages, and pages that can go back one by one, none of
// which cudaHostAlloc has. One registration a page, since the driver takes back whole ones only; a
// page is large, so that registering is rare.
class PinnedSource final : public Source {
 public:
  static constexpr std::size_t page_bytes = std::size_t{2} << 20;

  // context must outlive it.
  explicit PinnedSource(const CudaContext& context) : context_(context) {}

  Range reserve(Bytes bytes) noexcept override;
  void release(Range range) noexcept override;
  bool commit(Range range) noexcept override;
  void decommit(Range range) noexcept override;

  Bytes page_size() const noexcept override { return Bytes{page_bytes}; }
  Device device() const noexcept override { return cpu; }
  const char* name() const noexcept override { return "pinned"; }

  bool holds(const void* address) const noexcept { return pages_.holds(address); }

 private:
  const CudaContext& context_;
  PageRecord pages_{page_bytes};
};

}  // namespace ebb::inline v0
