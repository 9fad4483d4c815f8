// SPDX-License-Identifier: Apache-2.0
// Log-softmax, negative log likelihood and accuracy: a warp has a row.
#include "grid.h"
#include "kernels.h"

#include <math_constants.h>

namespace ebb::inline v0::nn {

namespace {

constexpr unsigned warp = 32;
constexpr unsigned whole_warp = 0xffffffffu;
constexpr unsigned threads = 256;       // of a block where rows are apart
constexpr unsigned threads_sum = 1024;  // of the only block where rows become one number

// Joins what the threads of a warp have, in the same order each time; every thread gets the result.
template <class T, class Join>
__device__ T join_warp(T value, Join join) {
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) {
    value = join(value, __shfl_xor_sync(whole_warp, value, distance));
  }
  return value;
}

// The same for the threads of a block of threads_sum; the first thread gets the result.
template <class T>
__device__ T sum_block(T value) {
  __shared__ T sums[threads_sum / warp];
  const auto add = [](T a, T b) { return a + b; };
  value = join_warp(value, add);
  if (threadIdx.x % warp == 0) {
    sums[threadIdx.x / warp] = value;
  }
  __syncthreads();
  return join_warp(threadIdx.x < threads_sum / warp ? sums[threadIdx.x] : T{}, add);
}

__device__ std::int64_t first_row() {
  return (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / warp;
}
__device__ std::int64_t rows_apart() {
  return std::int64_t{gridDim.x} * blockDim.x / warp;
}

__global__ void log_softmax(MatrixView<const float> x, MatrixView<float> y) {
  const unsigned lane = threadIdx.x % warp;
  for (std::int64_t i = first_row(); i < x.rows; i += rows_apart()) {
    const float* in = x.row(i);
    float top = -CUDART_INF_F;
    for (std::int64_t j = lane; j < x.columns; j += warp) {
      top = fmaxf(top, in[j]);
    }
    top = join_warp(top, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    for (std::int64_t j = lane; j < x.columns; j += warp) {
      sum += expf(in[j] - top);
    }
    sum = join_warp(sum, [](float a, float b) { return a + b; });
    const float shift = top + logf(sum);
    for (std::int64_t j = lane; j < x.columns; j += warp) {
      y.row(i)[j] = in[j] - shift;
    }
  }
}

__device__ bool is_class(std::int64_t label, const MatrixView<const float>& scores) {
  return label >= 0 && label < scores.columns;
}

__global__ void nll(Scored log_probs, float* loss) {
  const MatrixView<const float>& in = log_probs.scores;
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < in.rows; i += threads_sum) {
    const std::int64_t label = log_probs.labels[i];
    sum -= is_class(label, in) ? static_cast<double>(in.row(i)[label]) : CUDART_NAN;
  }
  sum = sum_block(sum);
  if (threadIdx.x == 0) {
    *loss = static_cast<float>(sum / static_cast<double>(in.rows));
  }
}

__global__ void nll_grad(Scored log_probs, MatrixView<float> grad) {
  const MatrixView<const float>& in = log_probs.scores;
  const float weight = 1.0f / static_cast<float>(in.rows);
  for (std::int64_t i = first_row(); i < in.rows; i += rows_apart()) {
    const std::int64_t label = log_probs.labels[i];
    const float share = is_class(label, in) ? weight : CUDART_NAN_F;
    for (std::int64_t j = threadIdx.x % warp; j < in.columns; j += warp) {
      grad.row(i)[j] = share * expf(in.row(i)[j]) - (j == label ? weight : 0.0f);
    }
  }
}

// The largest score, and the first place that has it.
struct Best {
  float score;
  std::int64_t at;
};
__device__ Best better(Best a, Best b) {
  const bool is_b = b.score > a.score || (b.score == a.score && b.at < a.at);
  return is_b ? b : a;
}
__device__ Best join_warp(Best best) {
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) {
    best = better(best, {__shfl_xor_sync(whole_warp, best.score, distance),
                         __shfl_xor_sync(whole_warp, best.at, distance)});
  }
  return best;
}

__global__ void count_correct(Scored scored, std::int64_t* count) {
  const MatrixView<const float>& in = scored.scores;
  const unsigned lane = threadIdx.x % warp;
  long long correct = 0;
  for (std::int64_t i = first_row(); i < in.rows; i += rows_apart()) {
    Best best{-CUDART_INF_F, in.columns};
    for (std::int64_t j = lane; j < in.columns; j += warp) {
      best = better(best, {in.row(i)[j], j});
    }
    best = join_warp(best);
    correct += lane == 0 && best.at == scored.labels[i] ? 1 : 0;
  }
  correct = sum_block(correct);
  if (threadIdx.x == 0) {
    *count = correct;
  }
}

unsigned blocks_by_row(std::int64_t rows) {
  return blocks_for(rows, threads / warp);
}

}  // namespace

cudaError_t queue_log_softmax(cudaStream_t stream, MatrixView<const float> x, MatrixView<float> y) {
  log_softmax<<<blocks_by_row(x.rows), threads, 0, stream>>>(x, y);
  return cudaGetLastError();
}

cudaError_t queue_nll(cudaStream_t stream, const Scored& log_probs, float* loss) {
  nll<<<1, threads_sum, 0, stream>>>(log_probs, loss);
  return cudaGetLastError();
}

cudaError_t queue_nll_grad(cudaStream_t stream, const Scored& log_probs, MatrixView<float> grad) {
  nll_grad<<<blocks_by_row(grad.rows), threads, 0, stream>>>(log_probs, grad);
  return cudaGetLastError();
}

cudaError_t queue_count_correct(cudaStream_t stream, const Scored& scores, std::int64_t* count) {
  count_correct<<<1, threads_sum, 0, stream>>>(scores, count);
  return cudaGetLastError();
}

}  // namespace ebb::inline v0::nn
