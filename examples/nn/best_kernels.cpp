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

decltype(Kernels::add) finish_of(const Kernels& kernels, Activation activation) noexcept {
  return activation == Activation::tanh   ? kernels.add_tanh
         : activation == Activation::relu ? kernels.add_relu
                                          : kernels.add;
}

}  // namespace ebb::inline v0::nn
