// SPDX-License-Identifier: Apache-2.0
// Device pages through the driver's virtual memory management. Refusals are values: a heap turns
// them into OutOfMemory. Any thread.
#include "cuda/cuda_source.h"

namespace ebb::inline v0 {

namespace {

CUmemAllocationProp pages_of(Device device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = static_cast<int>(device.index);
  return prop;
}

std::size_t page_bytes(const CudaContext& context, const CUmemAllocationProp& prop) {
  std::size_t bytes = 0;
  check(context.driver().granularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "cuMemGetAllocationGranularity", context.device());
  return bytes;
}

}  // namespace

CudaSource::CudaSource(const CudaContext& context)
    : context_(context),
      name_(to_string(context.device())),
      prop_(pages_of(context.device())),
      page_bytes_(page_bytes(context, prop_)),
      pages_(page_bytes_) {}

Range CudaSource::reserve(Bytes bytes) noexcept {
  const std::size_t rounded = (bytes.count() + page_bytes_ - 1) / page_bytes_ * page_bytes_;
  CUdeviceptr address = 0;
  if (context_.driver().address_reserve(&address, rounded, 0, 0, 0) != CUDA_SUCCESS) {
    return {};
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers
  auto* const begin = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  const Range range{begin, Bytes{rounded}};
  if (!pages_.add(range)) {
    context_.driver().address_free(address, rounded);
    return {};
  }
  return range;
}

void CudaSource::release(Range range) noexcept {
  if (!context_.is_alive()) {
    return;
  }
  decommit(range);
  pages_.remove(range);
  context_.driver().address_free(driver_address(range.begin), range.bytes.count());
}

bool CudaSource::commit(Range range) noexcept {
  std::byte* mapped_end = range.begin;
  while (mapped_end != range.end() && map_page(mapped_end)) {
    mapped_end += page_bytes_;
  }
  const Range mapped{range.begin, Bytes{static_cast<std::size_t>(mapped_end - range.begin)}};
  pages_.mark(mapped);
  CUmemAccessDesc access{};
  access.location = prop_.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (mapped_end == range.end() &&
      context_.driver().set_access(driver_address(range.begin), range.bytes.count(), &access, 1) ==
          CUDA_SUCCESS) {
    return true;
  }
  decommit(mapped);
  return false;
}

// One mapping a page: the driver unmaps whole mappings only, and any page may have to go back.
bool CudaSource::map_page(std::byte* begin) noexcept {
  const Driver& driver = context_.driver();
  CUmemGenericAllocationHandle handle = 0;
  if (driver.create(&handle, page_bytes_, &prop_, 0) != CUDA_SUCCESS) {
    return false;
  }
  const bool mapped = driver.map(driver_address(begin), page_bytes_, 0, handle, 0) == CUDA_SUCCESS;
  driver.release(handle);  // the mapping keeps the memory
  return mapped;
}

void CudaSource::decommit(Range range) noexcept {
  if (!context_.is_alive()) {
    return;
  }
  pages_.take(range, [this](Range page) {
    context_.driver().unmap(driver_address(page.begin), page.bytes.count());
  });
}

}  // namespace ebb::inline v0
