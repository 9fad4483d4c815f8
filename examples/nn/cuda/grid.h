// SPDX-License-Identifier: Apache-2.0
// How many blocks a kernel over rows and columns has. Used by the kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

namespace ebb::inline v0::nn {

// Kernels take longer strides where there is more: a grid has limits, and little is won beyond it.
constexpr unsigned blocks_max = 1024;

inline unsigned blocks_for(std::int64_t count, unsigned threads) {
  const std::int64_t blocks = (count + threads - 1) / threads;
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, blocks_max));
}

}  // namespace ebb::inline v0::nn
