// SPDX-License-Identifier: Apache-2.0
// The driver functions that the CUDA runtime does not wrap, or that it wraps by making contexts;
// looked up at run time, so that ebb starts on machines without a driver. And how failures become
// exceptions. Used by the CUDA backend. Any thread.
#pragma once

#include <ebb/alloc/device.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12050
#error "ebb needs CUDA 12.5 or newer"
#endif

namespace ebb::inline v0 {

// Throws DeviceError when result is a failure of the call named function, and forgets the error
// where it is one that can be, so that no later call reports it again.
void check(cudaError_t result, const char* function, Device device);
// The driver's codes are the runtime's.
inline void check(CUresult result, const char* function, Device device) {
  check(static_cast<cudaError_t>(result), function, device);
}
// The same for a failure that is an answer, or that nobody can be told of.
bool succeeded(cudaError_t result) noexcept;

// Whether the driver or the runtime library is shutting down: then nothing may be called.
bool driver_is_gone() noexcept;

struct Driver {
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) retain_context = nullptr;
  decltype(&::cuCtxGetCurrent) get_context = nullptr;
  decltype(&::cuCtxSetCurrent) set_context = nullptr;

  decltype(&::cuMemAddressReserve) address_reserve = nullptr;
  decltype(&::cuMemAddressFree) address_free = nullptr;
  decltype(&::cuMemCreate) create = nullptr;
  decltype(&::cuMemRelease) release = nullptr;
  decltype(&::cuMemMap) map = nullptr;
  decltype(&::cuMemUnmap) unmap = nullptr;
  decltype(&::cuMemSetAccess) set_access = nullptr;
  decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;

  decltype(&::cuMemsetD8Async) fill_8 = nullptr;
  decltype(&::cuMemsetD16Async) fill_16 = nullptr;
  decltype(&::cuMemsetD32Async) fill_32 = nullptr;
  decltype(&::cuMemsetD2D32Async) fill_rows_32 = nullptr;

  // Throws DeviceError, which names device, when there is no driver or it has not all of them.
  explicit Driver(Device device);
};

// Returns the functions, constant once they were found. Throws as Driver does.
const Driver& driver(Device device);

// An address as the driver has it.
inline CUdeviceptr driver_address(const void* address) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace ebb::inline v0
