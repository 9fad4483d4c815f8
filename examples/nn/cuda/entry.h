// SPDX-License-Identifier: Apache-2.0
// The one function of the CUDA module. Used by cuda_module.cpp, by name, and defined in
// cuda_ops.cpp.
#pragma once

#include "../device_ops.h"

// Renamed when DeviceOps changes, so that an old module is refused.
#define EBB_NN_CUDA_ENTRY_NAME "ebb_nn_cuda_ops"

// Returns the operations of the CUDA device with that index, to be deleted, else null with the
// reason in status.
extern "C" ebb::nn::DeviceOps* ebb_nn_cuda_ops(int device_index, ebb::nn::OpStatus* status);
