// SPDX-License-Identifier: Apache-2.0
// Log-softmax, negative log likelihood and accuracy on the CPU: a few rows of a few classes, so on
// the calling thread.
#include "cpu_math.h"
#include "matrix_view.h"

#include <algorithm>
#include <cmath>

namespace ebb::inline v0::nn {

namespace {

// Returns the label of each row, checked against the number of classes.
std::span<const std::int64_t> labels_of(const Tensor& labels, std::int64_t rows,
                                        std::int64_t classes, const char* function) {
  if (labels.dims() != 1 || labels.size(0) != rows) {
    refuse(function, "needs one label for each of " + std::to_string(rows) +
                         " rows, not labels of shape " + to_string(labels.shape()));
  }
  const std::span<const std::int64_t> values = labels.span<const std::int64_t>();
  for (std::int64_t label : values) {
    if (label < 0 || label >= classes) {
      refuse(function, "label " + std::to_string(label) + " is none of " + std::to_string(classes) +
                           " classes, numbered from 0");
    }
  }
  return values;
}

}  // namespace

void CpuMath::log_softmax(const Tensor& x, const Tensor& y) {
  const auto in = rows_of<const float>(x, "DeviceMath::log_softmax");
  const auto out = rows_of<float>(y, "DeviceMath::log_softmax");
  require_same_shape(in, out, "DeviceMath::log_softmax");
  for (std::int64_t i = 0; i < in.rows; ++i) {
    const float* row = in.row(i);
    const float top = *std::max_element(row, row + in.columns);
    float sum = 0;
    for (std::int64_t j = 0; j < in.columns; ++j) {
      sum += std::exp(row[j] - top);
    }
    const float shift = top + std::log(sum);
    std::transform(row, row + in.columns, out.row(i), [&](float v) { return v - shift; });
  }
}

void CpuMath::nll(const Tensor& log_probs, const Tensor& labels, const Tensor& loss) {
  const auto in = rows_of<const float>(log_probs, "DeviceMath::nll");
  const auto targets = labels_of(labels, in.rows, in.columns, "DeviceMath::nll");
  double sum = 0;
  for (std::int64_t i = 0; i < in.rows; ++i) {
    sum -= in.row(i)[targets[static_cast<std::size_t>(i)]];
  }
  *loss.data<float>() = static_cast<float>(sum / static_cast<double>(in.rows));
}

void CpuMath::nll_grad(const Tensor& log_probs, const Tensor& labels, const Tensor& grad) {
  const auto in = rows_of<const float>(log_probs, "DeviceMath::nll_grad");
  const auto out = rows_of<float>(grad, "DeviceMath::nll_grad");
  require_same_shape(in, out, "DeviceMath::nll_grad");
  const auto targets = labels_of(labels, in.rows, in.columns, "DeviceMath::nll_grad");
  const float weight = 1.0f / static_cast<float>(in.rows);
  for (std::int64_t i = 0; i < in.rows; ++i) {
    std::transform(in.row(i), in.row(i) + in.columns, out.row(i),
                   [&](float v) { return weight * std::exp(v); });
    out.row(i)[targets[static_cast<std::size_t>(i)]] -= weight;
  }
}

std::int64_t CpuMath::count_correct(const Tensor& scores, const Tensor& labels) {
  const auto in = rows_of<const float>(scores, "DeviceMath::count_correct");
  const auto targets = labels_of(labels, in.rows, in.columns, "DeviceMath::count_correct");
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < in.rows; ++i) {
    const float* row = in.row(i);
    const std::int64_t best = std::max_element(row, row + in.columns) - row;
    correct += best == targets[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  return correct;
}

}  // namespace ebb::inline v0::nn
