// SPDX-License-Identifier: Apache-2.0
// Picks the loops for the processor that runs us. Any thread.
#include "kernels.h"

namespace ebb::inline v0::nn {

const Kernels& best_kernels() noexcept {
#ifdef EBB_NN_AVX2
  if (__builtin_cpu_supports("avx2")) {
    return avx2_kernels();
  }
#endif
  return plain_kernels();
}

}  // namespace ebb::inline v0::nn
