// SPDX-License-Identifier: Apache-2.0
// In a build without CUDA.
#include "malloc_async.h"

#include <stdexcept>

namespace ebb::bench {

std::string malloc_async_missing() {
  return "this build has no CUDA";
}

Figures measure_malloc_async(const Effort& /*effort*/) {
  throw std::logic_error("[measure_malloc_async] " + malloc_async_missing());
}

}  // namespace ebb::bench
