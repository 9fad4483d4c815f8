// SPDX-License-Identifier: Apache-2.0
// The operations that are no products, as kernels that are queued on a stream. Used by CudaOps,
// with the device current.
#pragma once

#include "../device_ops.h"

#include <cuda_runtime_api.h>

namespace ebb::inline v0::nn {

// Each returns whether it could be queued. Sums are made in an order that follows from the shape.
cudaError_t queue_finish_linear(cudaStream_t stream, MatrixView<const float> bias,
                                Activation activation, MatrixView<float> y);
cudaError_t queue_linear_grad(cudaStream_t stream, MatrixView<const float> y, Activation activation,
                              MatrixView<float> grad, MatrixView<float> bias_grad);
cudaError_t queue_sgd(cudaStream_t stream, const SgdStep& step);

cudaError_t queue_log_softmax(cudaStream_t stream, MatrixView<const float> x, MatrixView<float> y);
cudaError_t queue_nll(cudaStream_t stream, const Scored& log_probs, float* loss);
cudaError_t queue_nll_grad(cudaStream_t stream, const Scored& log_probs, MatrixView<float> grad);
cudaError_t queue_count_correct(cudaStream_t stream, const Scored& scores, std::int64_t* count);

}  // namespace ebb::inline v0::nn
