// SPDX-License-Identifier: Apache-2.0
// The context of one CUDA device, and making it current for the length of a call. Used by the CUDA
// backend. Any thread.
#pragma once

#include "cuda/driver.h"

#include <ebb/alloc/fork.h>

#include <new>

namespace ebb::inline v0 {

// The device's primary context, which the CUDA runtime uses too. It stays when this goes, as one
// that the runtime has made does: the host may use it by now.
class CudaContext {
 public:
  // Makes the context if it is not there. Throws DeviceError.
  explicit CudaContext(Device device);

  Device device() const noexcept { return device_; }
  const Driver& driver() const noexcept { return driver_; }
  CUcontext handle() const noexcept { return handle_; }
  // False in a forked child, and once the driver has shut down: then nothing may be called.
  bool is_alive() const noexcept { return !mark_.in_child() && !driver_is_gone(); }

 private:
  const Device device_;
  const Driver& driver_;
  const detail::ForkMark mark_;
  CUcontext handle_ = nullptr;
};

// Makes a context current, and the thread's own again at the end. Not through cudaSetDevice, which
// would make a context on the device that the host had chosen; and needed around every call, since
// the runtime makes one on device 0 for a thread that has none. Cheap where it is current already.
class CurrentContext {
 public:
  // Throws DeviceError.
  explicit CurrentContext(const CudaContext& context);
  // For what is noexcept: is_set() tells whether anything may be called.
  CurrentContext(const CudaContext& context, std::nothrow_t /*tag*/) noexcept;
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  CurrentContext(CurrentContext&&) = delete;
  CurrentContext& operator=(CurrentContext&&) = delete;
  ~CurrentContext();

  bool is_set() const noexcept { return is_set_; }

 private:
  CUresult set(const CudaContext& context) noexcept;

  const Driver& driver_;
  CUcontext before_ = nullptr;
  bool is_set_ = false;
  bool has_changed_ = false;
};

}  // namespace ebb::inline v0
