// SPDX-License-Identifier: Apache-2.0
// Loads the CUDA half of the math, which is linked to cuBLAS: a program that was linked to it
// itself would not start where it is missing. Used by make_math. Any thread.
#pragma once

#include "device_ops.h"

#include <ebb/alloc/device.h>

#include <memory>

namespace ebb::inline v0::nn {

// Returns the operations of a CUDA device, whose module stays loaded as long as they live. The
// module is looked for beside the program, where a build has it, and where the system has
// libraries. Throws std::invalid_argument, which says what is missing.
std::shared_ptr<DeviceOps> load_cuda_ops(Device device);

}  // namespace ebb::inline v0::nn
