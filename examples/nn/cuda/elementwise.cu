// SPDX-License-Identifier: Apache-2.0
// Biases, activations, their gradients, and the optimizer's update.
#include "grid.h"
#include "kernels.h"

namespace ebb::inline v0::nn {

namespace {

constexpr unsigned across = 32;  // threads along a row, so that a warp reads one run of it
constexpr unsigned down = 8;

// The elements of matrices of one shape, as a thread takes them.
template <class F>
__device__ void for_elements(std::int64_t rows, std::int64_t columns, F f) {
  for (std::int64_t i = blockIdx.y * down + threadIdx.y; i < rows; i += gridDim.y * down) {
    for (std::int64_t j = blockIdx.x * across + threadIdx.x; j < columns; j += gridDim.x * across) {
      f(i, j);
    }
  }
}

template <class T>
dim3 grid_over(MatrixView<T> m) {
  return {blocks_for(m.columns, across), blocks_for(m.rows, down)};
}

__device__ float activated(Activation activation, float sum) {
  switch (activation) {
    case Activation::tanh:
      return tanhf(sum);
    case Activation::relu:
      return sum < 0.0f ? 0.0f : sum;  // in this order a NaN stays one
    default:
      return sum;
  }
}

// The gradient before the activation, of which y came out.
__device__ float before(Activation activation, float grad, float y) {
  switch (activation) {
    case Activation::tanh:
      return grad * (1.0f - y * y);
    case Activation::relu:
      return y > 0.0f ? grad : 0.0f;
    default:
      return grad;
  }
}

__global__ void finish_linear(const float* bias, Activation activation, MatrixView<float> y) {
  for_elements(y.rows, y.columns, [&](std::int64_t i, std::int64_t j) {
    float& value = y.row(i)[j];
    value = activated(activation, value + bias[j]);
  });
}

// A block has 32 columns. Each of its rows of threads sums every down-th row of the matrix, and the
// first of them sums the sums.
__global__ void linear_grad(MatrixView<const float> y, Activation activation,
                            MatrixView<float> grad, float* bias_grad) {
  __shared__ float sums[down][across];
  const std::int64_t j = std::int64_t{blockIdx.x} * across + threadIdx.x;
  float sum = 0;
  if (j < grad.columns) {
    for (std::int64_t i = threadIdx.y; i < grad.rows; i += down) {
      float& value = grad.row(i)[j];
      value = before(activation, value, y.row(i)[j]);
      sum += value;
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && j < grad.columns) {
    for (unsigned i = 1; i < down; ++i) {
      sum += sums[i][threadIdx.x];
    }
    bias_grad[j] = sum;
  }
}

__global__ void sgd(SgdStep step) {
  for_elements(step.values.rows, step.values.columns, [&](std::int64_t i, std::int64_t j) {
    float& velocity = step.velocities.row(i)[j];
    velocity = step.momentum * velocity + step.grads.row(i)[j];
    step.values.row(i)[j] -= step.rate * velocity;
  });
}

}  // namespace

cudaError_t queue_finish_linear(cudaStream_t stream, MatrixView<const float> bias,
                                Activation activation, MatrixView<float> y) {
  finish_linear<<<grid_over(y), dim3(across, down), 0, stream>>>(bias.data, activation, y);
  return cudaGetLastError();
}

cudaError_t queue_linear_grad(cudaStream_t stream, MatrixView<const float> y, Activation activation,
                              MatrixView<float> grad, MatrixView<float> bias_grad) {
  const auto blocks = static_cast<unsigned>((grad.columns + across - 1) / across);
  linear_grad<<<blocks, dim3(across, down), 0, stream>>>(y, activation, grad, bias_grad.data);
  return cudaGetLastError();
}

cudaError_t queue_sgd(cudaStream_t stream, const SgdStep& step) {
  sgd<<<grid_over(step.values), dim3(across, down), 0, stream>>>(step);
  return cudaGetLastError();
}

}  // namespace ebb::inline v0::nn
