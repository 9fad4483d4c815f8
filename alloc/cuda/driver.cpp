// SPDX-License-Identifier: Apache-2.0
// How driver functions are found, and how failures become exceptions. Any thread.
#include "cuda/driver.h"

#include <ebb/alloc/error.h>

namespace ebb::inline v0 {

namespace {

// The version of CUDA whose form of the functions is asked for: they had all appeared in 10.2.
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

// Errors after which CUDA refuses all further work of the process, or the context is gone.
bool loses_device(cudaError_t result) {
  switch (static_cast<int>(result)) {
    case cudaErrorCudartUnloading:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case 226:  // contained, which CUDA 12.5 has no name for
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case 721:  // tensor memory leak, the same
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

}  // namespace

void check(cudaError_t result, const char* function, Device device) {
  if (!succeeded(result)) {
    throw DeviceError(function, static_cast<int>(result), to_string(device),
                      cudaGetErrorString(result), loses_device(result));
  }
}

bool succeeded(cudaError_t result) noexcept {
  if (result == cudaSuccess) {
    return true;
  }
  static_cast<void>(cudaGetLastError());
  return false;
}

bool driver_is_gone() noexcept {
  int index = 0;
  const cudaError_t result = cudaGetDevice(&index);  // makes no context
  return !succeeded(result) && result == cudaErrorCudartUnloading;
}

Driver::Driver(Device device) {
  find(device_get, "cuDeviceGet", device);
  find(retain_context, "cuDevicePrimaryCtxRetain", device);
  find(get_context, "cuCtxGetCurrent", device);
  find(set_context, "cuCtxSetCurrent", device);

  find(address_reserve, "cuMemAddressReserve", device);
  find(address_free, "cuMemAddressFree", device);
  find(create, "cuMemCreate", device);
  find(release, "cuMemRelease", device);
  find(map, "cuMemMap", device);
  find(unmap, "cuMemUnmap", device);
  find(set_access, "cuMemSetAccess", device);
  find(granularity, "cuMemGetAllocationGranularity", device);

  find(fill_8, "cuMemsetD8Async", device);
  find(fill_16, "cuMemsetD16Async", device);
  find(fill_32, "cuMemsetD32Async", device);
  find(fill_rows_32, "cuMemsetD2D32Async", device);
}

const Driver& driver(Device device) {
  static const Driver found(device);
  return found;
}

}  // namespace ebb::inline v0
