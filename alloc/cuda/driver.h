// SPDX-License-Identifier: Apache-2.0
// The few driver functions that the CUDA runtime does not wrap, looked up at run time so that ebb
// starts on machines without a driver. Used by the CUDA backend. Any thread.
#pragma once

#include <ebb/alloc/device.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#if CUDART_VERSION < 12050
#error "ebb needs CUDA 12.5 or newer"
#endif

namespace ebb::inline v0 {

// Throws DeviceError when result is a failure of the call named function.
void check(cudaError_t result, const char* function, Device device);

// Makes a device current and restores the thread's context at the end. Not through cudaSetDevice,
// which would make a context on the device that the host had chosen.
class CurrentDevice {
 public:
  explicit CurrentDevice(Device device);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  CurrentDevice(CurrentDevice&&) = delete;
  CurrentDevice& operator=(CurrentDevice&&) = delete;
  ~CurrentDevice();

 private:
  CUcontext before_ = nullptr;
};

// The driver's virtual memory management.
struct DriverMemory {
  decltype(&::cuMemAddressReserve) address_reserve = nullptr;
  decltype(&::cuMemAddressFree) address_free = nullptr;
  decltype(&::cuMemCreate) create = nullptr;
  decltype(&::cuMemRelease) release = nullptr;
  decltype(&::cuMemMap) map = nullptr;
  decltype(&::cuMemUnmap) unmap = nullptr;
  decltype(&::cuMemSetAccess) set_access = nullptr;
  decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;

  // Throws DeviceError when the driver has not all of them.
  explicit DriverMemory(Device device);
};

}  // namespace ebb::inline v0
