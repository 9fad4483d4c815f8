// SPDX-License-Identifier: Apache-2.0
// Calls of a device's backend, after the last of which nothing more is asked of a lost device.
// Private to DeviceContext.
#pragma once

#include <ebb/alloc/device_context.h>
#include <ebb/alloc/error.h>

namespace ebb::inline v0 {

template <class F>
auto DeviceContext::watched(const char* function, F f) -> decltype(f()) {
  require_alive(function);
  try {
    return f();
  } catch (const DeviceError& error) {
    if (error.is_lost()) {
      note_loss(error);
    }
    throw;
  }
}

}  // namespace ebb::inline v0
