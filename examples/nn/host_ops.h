// SPDX-License-Identifier: Apache-2.0
// The operations of the simulated device: the CPU's loops, on whatever thread runs the stream. Used
// by make_math. No call of ebb's: any thread.
#pragma once

#include "device_ops.h"
#include "kernels.h"

namespace ebb::inline v0::nn {

class HostOps final : public DeviceOps {
 public:
  HostOps() noexcept : kernels_(best_kernels()) {}

  std::size_t workspace_bytes() const noexcept override { return 0; }

  OpStatus multiply(const OpQueue& queue, MatrixView<const float> a, MatrixView<const float> b,
                    float beta, MatrixView<float> c) noexcept override;
  OpStatus finish_linear(const OpQueue& queue, MatrixView<const float> bias, Activation activation,
                         MatrixView<float> y) noexcept override;
  OpStatus linear_grad(const OpQueue& queue, MatrixView<const float> y, Activation activation,
                       MatrixView<float> grad, MatrixView<float> bias_grad) noexcept override;

  OpStatus log_softmax(const OpQueue& queue, MatrixView<const float> x,
                       MatrixView<float> y) noexcept override;
  OpStatus nll(const OpQueue& queue, const Scored& log_probs, float* loss) noexcept override;
  OpStatus nll_grad(const OpQueue& queue, const Scored& log_probs,
                    MatrixView<float> grad) noexcept override;
  OpStatus count_correct(const OpQueue& queue, const Scored& scores,
                         std::int64_t* count) noexcept override;

  OpStatus sgd(const OpQueue& queue, const SgdStep& step) noexcept override;

 private:
  const Kernels& kernels_;
};

}  // namespace ebb::inline v0::nn
