// SPDX-License-Identifier: Apache-2.0
// Single-threaded: a thread of the simulated device runs them, and may not start tasks.
#include "host_ops.h"

#include "gemm.h"
#include "loss_loops.h"

#include <algorithm>
#include <limits>

namespace ebb::inline v0::nn {

namespace {

constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

bool are_classes(const Scored& scored) {
  return std::all_of(scored.labels, scored.labels + scored.scores.rows,
                     [&](auto label) { return label >= 0 && label < scored.scores.columns; });
}

}  // namespace

OpStatus HostOps::multiply(const OpQueue& /*queue*/, MatrixView<const float> a,
                           MatrixView<const float> b, float beta, MatrixView<float> c) noexcept {
  return {"dnnl_sgemm", gemm_here(a, b, beta, c), "oneDNN refuses the product"};
}

OpStatus HostOps::finish_linear(const OpQueue& /*queue*/, MatrixView<const float> bias,
                                Activation activation, MatrixView<float> y) noexcept {
  const auto finish = finish_of(kernels_, activation);
  for (std::int64_t i = 0; i < y.rows; ++i) {
    finish(y.row(i), bias.data, y.columns);
  }
  return {};
}

OpStatus HostOps::linear_grad(const OpQueue& /*queue*/, MatrixView<const float> y,
                              Activation activation, MatrixView<float> grad,
                              MatrixView<float> bias_grad) noexcept {
  std::fill_n(bias_grad.data, grad.columns, 0.0f);
  for (std::int64_t i = 0; i < grad.rows; ++i) {
    if (activation == Activation::tanh) {
      kernels_.tanh_grad(grad.row(i), y.row(i), grad.columns);
    } else if (activation == Activation::relu) {
      kernels_.relu_grad(grad.row(i), y.row(i), grad.columns);
    }
    kernels_.add(bias_grad.data, grad.row(i), grad.columns);
  }
  return {};
}

OpStatus HostOps::log_softmax(const OpQueue& /*queue*/, MatrixView<const float> x,
                              MatrixView<float> y) noexcept {
  log_softmax_rows(x, y);
  return {};
}

OpStatus HostOps::nll(const OpQueue& /*queue*/, const Scored& log_probs, float* loss) noexcept {
  *loss = are_classes(log_probs) ? mean_nll(log_probs.scores, log_probs.labels) : no_number;
  return {};
}

OpStatus HostOps::nll_grad(const OpQueue& /*queue*/, const Scored& log_probs,
                           MatrixView<float> grad) noexcept {
  if (are_classes(log_probs)) {
    nll_grad_rows(log_probs.scores, log_probs.labels, grad);
    return {};
  }
  for (std::int64_t i = 0; i < grad.rows; ++i) {
    std::fill_n(grad.row(i), grad.columns, no_number);
  }
  return {};
}

OpStatus HostOps::count_correct(const OpQueue& /*queue*/, const Scored& scores,
                                std::int64_t* count) noexcept {
  *count = correct_rows(scores.scores, scores.labels);
  return {};
}

OpStatus HostOps::sgd(const OpQueue& /*queue*/, const SgdStep& step) noexcept {
  for (std::int64_t i = 0; i < step.values.rows; ++i) {
    kernels_.sgd(step.values.row(i), step.velocities.row(i), step.grads.row(i), step.rate,
                 step.momentum, step.values.columns);
  }
  return {};
}

}  // namespace ebb::inline v0::nn
