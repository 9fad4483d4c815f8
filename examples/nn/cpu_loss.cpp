// SPDX-License-Identifier: Apache-2.0
// Log-softmax, negative log likelihood and accuracy on the CPU: a few rows of a few classes, so on
// the calling thread.
#include "cpu_math.h"
#include "loss_loops.h"
#include "operands.h"

namespace ebb::inline v0::nn {

namespace {

// Returns the label of each row, checked against the number of classes.
const std::int64_t* labels_of(const Tensor& labels, MatrixView<const float> scores,
                              const char* function) {
  require_labels(labels, scores.rows, function);
  const std::span<const std::int64_t> values = labels.span<const std::int64_t>();
  for (std::int64_t label : values) {
    if (label < 0 || label >= scores.columns) {
      refuse(function, "label " + std::to_string(label) + " is none of " +
                           std::to_string(scores.columns) + " classes, numbered from 0");
    }
  }
  return values.data();
}

}  // namespace

void CpuMath::log_softmax(const Tensor& x, const Tensor& y) {
  const auto in = rows_of<const float>(x, "DeviceMath::log_softmax");
  const auto out = rows_of<float>(y, "DeviceMath::log_softmax");
  require_same_shape(in, out, "DeviceMath::log_softmax");
  log_softmax_rows(in, out);
}

void CpuMath::nll(const Tensor& log_probs, const Tensor& labels, const Tensor& loss) {
  const auto in = rows_of<const float>(log_probs, "DeviceMath::nll");
  *loss.data<float>() = mean_nll(in, labels_of(labels, in, "DeviceMath::nll"));
}

void CpuMath::nll_grad(const Tensor& log_probs, const Tensor& labels, const Tensor& grad) {
  const auto in = rows_of<const float>(log_probs, "DeviceMath::nll_grad");
  const auto out = rows_of<float>(grad, "DeviceMath::nll_grad");
  require_same_shape(in, out, "DeviceMath::nll_grad");
  nll_grad_rows(in, labels_of(labels, in, "DeviceMath::nll_grad"), out);
}

std::int64_t CpuMath::count_correct(const Tensor& scores, const Tensor& labels) {
  const auto in = rows_of<const float>(scores, "DeviceMath::count_correct");
  return correct_rows(in, labels_of(labels, in, "DeviceMath::count_correct"));
}

}  // namespace ebb::inline v0::nn
