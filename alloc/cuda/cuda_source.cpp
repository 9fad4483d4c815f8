// SPDX-License-Identifier: Apache-2.0
// Device pages through the driver's virtual memory management. Refusals are values: a heap turns
// them into OutOfMemory. Any thread.
#include "cuda/cuda_source.h"

#include <ebb/alloc/error.h>

#include <iterator>
#include <new>

namespace ebb::inline v0 {

namespace {

CUdeviceptr address_of(const std::byte* begin) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(begin));
}

}  // namespace

CudaSource::CudaSource(Device device) : device_(device), name_(to_string(device)), driver_(device) {
  const CurrentDevice current(device);
  check(cudaFree(nullptr), "cudaFree", device);  // makes the context
  prop_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop_.location.id = static_cast<int>(device.index);
  const CUresult result =
      driver_.granularity(&page_bytes_, &prop_, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result != CUDA_SUCCESS) {
    throw DeviceError("cuMemGetAllocationGranularity", static_cast<int>(result), name_,
                      "the device may lack virtual memory management");
  }
}

Range CudaSource::reserve(Bytes bytes) noexcept {
  const std::size_t pages = (bytes.count() + page_bytes_ - 1) / page_bytes_;
  CUdeviceptr address = 0;
  if (driver_.address_reserve(&address, pages * page_bytes_, 0, 0, 0) != CUDA_SUCCESS) {
    return {};
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers
  const Range range{reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)),
                    Bytes{pages * page_bytes_}};
  try {
    const std::lock_guard lock(mutex_);
    reserved_.emplace(range.begin, Mapped(pages));
  } catch (const std::bad_alloc&) {
    driver_.address_free(address, pages * page_bytes_);
    return {};
  }
  return range;
}

void CudaSource::release(Range range) noexcept {
  decommit(range);
  {
    const std::lock_guard lock(mutex_);
    reserved_.erase(range.begin);
  }
  driver_.address_free(address_of(range.begin), range.bytes.count());
}

bool CudaSource::commit(Range range) noexcept {
  const std::size_t count = range.bytes.count() / page_bytes_;
  std::size_t done = 0;
  while (done < count && map_page(address_of(range.begin) + done * page_bytes_)) {
    ++done;
  }
  {
    const std::lock_guard lock(mutex_);
    std::size_t page = 0;
    Mapped& mapped = mapped_of(range.begin, page);
    for (std::size_t i = 0; i < done; ++i) {
      mapped[page + i] = true;
    }
  }
  CUmemAccessDesc access{};
  access.location = prop_.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (done == count && driver_.set_access(address_of(range.begin), range.bytes.count(), &access,
                                          1) == CUDA_SUCCESS) {
    return true;
  }
  decommit({range.begin, Bytes{done * page_bytes_}});
  return false;
}

// One mapping a page: the driver unmaps whole mappings only, and any page may have to go back.
bool CudaSource::map_page(CUdeviceptr address) noexcept {
  CUmemGenericAllocationHandle handle = 0;
  if (driver_.create(&handle, page_bytes_, &prop_, 0) != CUDA_SUCCESS) {
    return false;
  }
  const bool mapped = driver_.map(address, page_bytes_, 0, handle, 0) == CUDA_SUCCESS;
  driver_.release(handle);  // the mapping keeps the memory
  return mapped;
}

void CudaSource::decommit(Range range) noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t page = 0;
  Mapped& mapped = mapped_of(range.begin, page);
  for (std::size_t i = 0; i < range.bytes.count() / page_bytes_; ++i) {
    if (mapped[page + i]) {
      driver_.unmap(address_of(range.begin) + i * page_bytes_, page_bytes_);
      mapped[page + i] = false;
    }
  }
}

// The reserved range that begin lies in, and begin's page in it. With the lock held.
CudaSource::Mapped& CudaSource::mapped_of(const std::byte* begin, std::size_t& page) noexcept {
  const auto entry = std::prev(reserved_.upper_bound(begin));
  page = static_cast<std::size_t>(begin - entry->first) / page_bytes_;
  return entry->second;
}

}  // namespace ebb::inline v0
