// SPDX-License-Identifier: Apache-2.0
// Elementwise loops over rows, compiled once for the plain machine and once for AVX2. Used by
// CpuMath. Pure functions: any thread.
#pragma once

#include "activation.h"

#include <cstdint>

namespace ebb::inline v0::nn {

// One set of loops. Rows do not overlap. All sets give the same bits: none contracts to fused
// multiply-add, so neither the machine nor the split of a row over tasks shows in the result.
struct Kernels {
  // y = y + bias
  void (*add)(float* y, const float* bias, std::int64_t count);
  // y = max(y + bias, 0)
  void (*add_relu)(float* y, const float* bias, std::int64_t count);
  // y = tanh(y + bias), within 1.5 units in the last place
  void (*add_tanh)(float* y, const float* bias, std::int64_t count);
  // grad = y > 0 ? grad : 0
  void (*relu_grad)(float* grad, const float* y, std::int64_t count);
  // grad = grad (1 - y^2)
  void (*tanh_grad)(float* grad, const float* y, std::int64_t count);
  // velocity = momentum velocity + grad; value = value - rate velocity
  void (*sgd)(float* value, float* velocity, const float* grad, float rate, float momentum,
              std::int64_t count);
};

const Kernels& plain_kernels() noexcept;
const Kernels& avx2_kernels() noexcept;  // only where the processor has AVX2
// Returns the best set for this processor.
const Kernels& best_kernels() noexcept;

// Returns the loop that adds a bias and applies activation.
decltype(Kernels::add) finish_of(const Kernels& kernels, Activation activation) noexcept;

}  // namespace ebb::inline v0::nn
