// SPDX-License-Identifier: Apache-2.0
// Through the driver alone, so that the runtime's idea of the thread's device stays the host's. Any
// thread.
#include "cuda/context.h"

namespace ebb::inline v0 {

CudaContext::CudaContext(Device device) : device_(device), driver_(ebb::driver(device)) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount", device);  // initialises the driver
  CUdevice ordinal = 0;
  check(driver_.device_get(&ordinal, static_cast<int>(device.index)), "cuDeviceGet", device);
  check(driver_.retain_context(&handle_, ordinal), "cuDevicePrimaryCtxRetain", device);
}

CurrentContext::CurrentContext(const CudaContext& context) : driver_(context.driver()) {
  check(set(context), "cuCtxSetCurrent", context.device());
}

CurrentContext::CurrentContext(const CudaContext& context, std::nothrow_t /*tag*/) noexcept
    : driver_(context.driver()) {
  if (context.is_alive()) {
    static_cast<void>(set(context));
  }
}

CurrentContext::~CurrentContext() {
  if (has_changed_) {
    static_cast<void>(driver_.set_context(before_));
  }
}

CUresult CurrentContext::set(const CudaContext& context) noexcept {
  CUresult result = driver_.get_context(&before_);
  if (result == CUDA_SUCCESS && before_ != context.handle()) {
    result = driver_.set_context(context.handle());
    has_changed_ = result == CUDA_SUCCESS;
  }
  is_set_ = result == CUDA_SUCCESS;
  return result;
}

}  // namespace ebb::inline v0
