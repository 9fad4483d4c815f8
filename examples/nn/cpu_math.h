// SPDX-License-Identifier: Apache-2.0
// Math on the CPU: oneDNN's products and our own loops, split over the runtime's step executor.
// Made by make_math. Thread rule: the trainer's thread; its tasks touch disjoint parts.
#pragma once

#include "device_math.h"
#include "kernels.h"

namespace ebb::inline v0::nn {

class CpuMath final : public DeviceMath {
 public:
  explicit CpuMath(Runtime& rt) noexcept : rt_(rt), kernels_(best_kernels()) {}

  Runtime& runtime() const noexcept override { return rt_; }
  Device device() const noexcept override { return cpu; }
  Stream stream() const override { return {}; }

  Tensor matrix(std::int64_t rows, std::int64_t columns, Place at) override;
  Tensor scalar(Place at) override;

  void multiply(const Tensor& a, const Tensor& b, float beta, const Tensor& c) override;
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
              const Tensor& y) override;
  void linear_grad(const Tensor& y, Activation activation, const Tensor& grad,
                   const Tensor& bias_grad) override;

  void log_softmax(const Tensor& x, const Tensor& y) override;
  void nll(const Tensor& log_probs, const Tensor& labels, const Tensor& loss) override;
  void nll_grad(const Tensor& log_probs, const Tensor& labels, const Tensor& grad) override;
  std::int64_t count_correct(const Tensor& scores, const Tensor& labels) override;

  void sgd(const Tensor& value, const Tensor& velocity, const Tensor& grad, float rate,
           float momentum) override;

 private:
  Runtime& rt_;
  const Kernels& kernels_;
};

}  // namespace ebb::inline v0::nn
