// SPDX-License-Identifier: Apache-2.0
// Fills as the CUDA driver takes them. Used by the CUDA backend. Any thread.
#pragma once

#include "backend.h"
#include "cuda/context.h"

namespace ebb::inline v0 {

// Queues what Backend::fill promises; the context is current. Throws DeviceError, and
// std::invalid_argument for a width that there is not.
void queue_fill(const CudaContext& context, cudaStream_t handle, void* to, FillPattern pattern,
                std::size_t count);

}  // namespace ebb::inline v0
