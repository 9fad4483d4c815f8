// SPDX-License-Identifier: Apache-2.0
// The loops of kernels.h. The build compiles this file once per instruction set and names the
// function by EBB_NN_KERNELS. It includes nothing with inline functions: the linker could pick the
// AVX2 copy of one for every caller. Any thread.
#include "kernels.h"

namespace ebb::inline v0::nn {

namespace {

float from_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
std::uint32_t to_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}

constexpr std::uint32_t sign_bit = 0x80000000u;

// e^y for y in [0, 20]: 2^n times a polynomial in the rest, which is at most ln(2)/2.
float exp_to_20(float y) {
  constexpr float round_to_int = 12582912.0f;  // 1.5 * 2^23: the sum's low bits are the integer
  const float shifted = y * 1.44269504f + round_to_int;
  const float n = shifted - round_to_int;
  // ln(2) in two parts, the first with few bits, so that n times it is exact.
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.3926251e-3f;
  p = p * r + 8.3632329e-3f;
  p = p * r + 4.1666554e-2f;
  p = p * r + 1.6666576e-1f;
  p = p * r + 0.5f;
  const float scale = from_bits((to_bits(shifted) << 23) + 0x3f800000u);
  return (1.0f + (r + r * r * p)) * scale;
}

// Both branches are computed and one is selected, so that loops vectorise. The coefficients
// interpolate at Chebyshev nodes.
float tanh_of(float x) {
  const float size = from_bits(to_bits(x) & ~sign_bit);
  const float z = x * x;
  float p = -6.2002579e-3f;
  p = p * z + 2.1066631e-2f;
  p = p * z - 5.3865198e-2f;
  p = p * z + 1.3332861e-1f;
  p = p * z - 3.3333330e-1f;
  const float near_zero = size + size * z * p;
  const float capped = size > 10.0f ? 10.0f : size;  // in this order a NaN stays one
  const float far = 1.0f - 2.0f / (exp_to_20(capped + capped) + 1.0f);
  const float result = size < 0.6f ? near_zero : far;
  return from_bits(to_bits(result) | (to_bits(x) & sign_bit));
}

void add(float* __restrict y, const float* __restrict bias, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] += bias[i];
  }
}

void add_relu(float* __restrict y, const float* __restrict bias, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float sum = y[i] + bias[i];
    y[i] = sum < 0.0f ? 0.0f : sum;  // in this order a NaN stays one
  }
}

void add_tanh(float* __restrict y, const float* __restrict bias, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = tanh_of(y[i] + bias[i]);
  }
}

void relu_grad(float* __restrict grad, const float* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    grad[i] = y[i] > 0.0f ? grad[i] : 0.0f;
  }
}

void tanh_grad(float* __restrict grad, const float* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    grad[i] *= 1.0f - y[i] * y[i];
  }
}

void sgd(float* __restrict value, float* __restrict velocity, const float* __restrict grad,
         float rate, float momentum, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = momentum * velocity[i] + grad[i];
    velocity[i] = v;
    value[i] -= rate * v;
  }
}

constexpr Kernels kernels{add, add_relu, add_tanh, relu_grad, tanh_grad, sgd};

}  // namespace

const Kernels& EBB_NN_KERNELS() noexcept {
  return kernels;
}

}  // namespace ebb::inline v0::nn
