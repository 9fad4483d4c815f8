// SPDX-License-Identifier: Apache-2.0
// How driver functions are found, and how failures become exceptions. Any thread.
#include "cuda/driver.h"

#include <ebb/alloc/error.h>

namespace ebb::inline v0 {

namespace {

// The version of CUDA whose form of the functions is asked for: they all appeared in 10.2.
constexpr unsigned entry_version = 10020;

template <class Function>
void find(Function& function, const char* name, Device device) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion(name, &found, entry_version, cudaEnableDefault, &status),
        name, device);
  if (status != cudaDriverEntryPointSuccess || found == nullptr) {
    throw DeviceError(name, static_cast<int>(status), to_string(device),
                      "the driver does not have this function");
  }
  function = reinterpret_cast<Function>(found);
}

}  // namespace

void check(cudaError_t result, const char* function, Device device) {
  if (result != cudaSuccess) {
    // Also forgets the error, where it is one that can be, so that no later call reports it again.
    static_cast<void>(cudaGetLastError());
    throw DeviceError(function, static_cast<int>(result), to_string(device),
                      cudaGetErrorString(result));
  }
}

namespace {

struct ContextCalls {
  decltype(&::cuCtxGetCurrent) get = nullptr;
  decltype(&::cuCtxSetCurrent) set = nullptr;

  explicit ContextCalls(Device device) {
    find(get, "cuCtxGetCurrent", device);
    find(set, "cuCtxSetCurrent", device);
  }
};

// Constant once found. Throws DeviceError where there is no driver.
const ContextCalls& context_calls(Device device) {
  static const ContextCalls calls(device);
  return calls;
}

}  // namespace

CurrentDevice::CurrentDevice(Device device) {
  if (context_calls(device).get(&before_) != CUDA_SUCCESS) {
    before_ = nullptr;  // the driver is not initialised yet
  }
  check(cudaSetDevice(static_cast<int>(device.index)), "cudaSetDevice", device);
}

CurrentDevice::~CurrentDevice() {
  static_cast<void>(context_calls(cpu).set(before_));
}

DriverMemory::DriverMemory(Device device) {
  find(address_reserve, "cuMemAddressReserve", device);
  find(address_free, "cuMemAddressFree", device);
  find(create, "cuMemCreate", device);
  find(release, "cuMemRelease", device);
  find(map, "cuMemMap", device);
  find(unmap, "cuMemUnmap", device);
  find(set_access, "cuMemSetAccess", device);
  find(granularity, "cuMemGetAllocationGranularity", device);
}

}  // namespace ebb::inline v0
