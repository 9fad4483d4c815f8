// SPDX-License-Identifier: Apache-2.0
// The operations that are split over tasks: products, activations, the optimizer's update. The
// losses are in cpu_loss.cpp.
#include "cpu_math.h"

#include "gemm.h"
#include "operands.h"

#include <ebb/runtime/parallel.h>

#include <algorithm>

namespace ebb::inline v0::nn {

namespace {

constexpr std::int64_t stripe = 64;          // columns per task: four cache lines of a row
constexpr std::int64_t sgd_grain = 1 << 14;  // elements per task: about 5 us

struct Finish {
  void (*kernel)(float* y, const float* bias, std::int64_t count);
  const float* bias;
};

void finish_tile(void* context, MatrixView<float> tile, std::int64_t first_column) {
  const auto& finish = *static_cast<const Finish*>(context);
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    finish.kernel(tile.row(i), finish.bias + first_column, tile.columns);
  }
}

}  // namespace

Tensor CpuMath::matrix(std::int64_t rows, std::int64_t columns, Place at) {
  return empty(rt_, {rows, padded_stride(columns)}, DType::f32, at).narrow(1, 0, columns);
}

Tensor CpuMath::scalar(Place at) {
  return empty(rt_, Shape{}, DType::f32, at);
}

void CpuMath::multiply(const Tensor& a, const Tensor& b, float beta, const Tensor& c) {
  gemm(rt_.step_executor(), matrix_of<const float>(a, "DeviceMath::multiply"),
       matrix_of<const float>(b, "DeviceMath::multiply"), beta,
       rows_of<float>(c, "DeviceMath::multiply"));
}

void CpuMath::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
                     const Tensor& y) {
  const auto weights = rows_of<const float>(w, "DeviceMath::linear");
  const auto biases = row_of<const float>(bias, weights.rows, "bias", "DeviceMath::linear");
  Finish finish{finish_of(kernels_, activation), biases.data};
  gemm(rt_.step_executor(), matrix_of<const float>(x, "DeviceMath::linear"), transposed(weights),
       0.0f, rows_of<float>(y, "DeviceMath::linear"), {finish_tile, &finish});
}

void CpuMath::linear_grad(const Tensor& y, Activation activation, const Tensor& grad,
                          const Tensor& bias_grad) {
  const auto outputs = rows_of<const float>(y, "DeviceMath::linear_grad");
  const auto grads = rows_of<float>(grad, "DeviceMath::linear_grad");
  const auto sums = row_of<float>(bias_grad, grads.columns, "bias_grad", "DeviceMath::linear_grad");
  require_same_shape(outputs, grads, "DeviceMath::linear_grad");
  // By columns, so that each sum is made by one task, in the order of the rows.
  const std::int64_t stripes = (grads.columns + stripe - 1) / stripe;
  parallel_for(rt_.step_executor(), stripes, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t column = begin * stripe;
    const std::int64_t count = std::min(end * stripe, grads.columns) - column;
    std::fill_n(sums.data + column, count, 0.0f);
    for (std::int64_t i = 0; i < grads.rows; ++i) {
      float* row = grads.row(i) + column;
      if (activation == Activation::tanh) {
        kernels_.tanh_grad(row, outputs.row(i) + column, count);
      } else if (activation == Activation::relu) {
        kernels_.relu_grad(row, outputs.row(i) + column, count);
      }
      kernels_.add(sums.data + column, row, count);
    }
  });
}

void CpuMath::sgd(const Tensor& value, const Tensor& velocity, const Tensor& grad, float rate,
                  float momentum) {
  const auto values = rows_of<float>(value, "DeviceMath::sgd");
  const auto velocities = rows_of<float>(velocity, "DeviceMath::sgd");
  const auto grads = rows_of<const float>(grad, "DeviceMath::sgd");
  require_same_shape(values, velocities, "DeviceMath::sgd");
  require_same_shape(values, grads, "DeviceMath::sgd");
  const std::int64_t grain =
      std::max<std::int64_t>(1, sgd_grain / std::max<std::int64_t>(1, values.columns));
  parallel_for(rt_.step_executor(), values.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      kernels_.sgd(values.row(i), velocities.row(i), grads.row(i), rate, momentum, values.columns);
    }
  });
}

}  // namespace ebb::inline v0::nn
