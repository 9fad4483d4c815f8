// SPDX-License-Identifier: Apache-2.0
// A few rows of a few classes: plain loops. Any thread.
#include "loss_loops.h"

#include <algorithm>
#include <cmath>

namespace ebb::inline v0::nn {

void log_softmax_rows(MatrixView<const float> x, MatrixView<float> y) noexcept {
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const float* row = x.row(i);
    const float top = *std::max_element(row, row + x.columns);
    float sum = 0;
    for (std::int64_t j = 0; j < x.columns; ++j) {
      sum += std::exp(row[j] - top);
    }
    const float shift = top + std::log(sum);
    std::transform(row, row + x.columns, y.row(i), [&](float v) { return v - shift; });
  }
}

float mean_nll(MatrixView<const float> log_probs, const std::int64_t* labels) noexcept {
  double sum = 0;
  for (std::int64_t i = 0; i < log_probs.rows; ++i) {
    sum -= log_probs.row(i)[labels[i]];
  }
  return static_cast<float>(sum / static_cast<double>(log_probs.rows));
}

void nll_grad_rows(MatrixView<const float> log_probs, const std::int64_t* labels,
                   MatrixView<float> grad) noexcept {
  const float weight = 1.0f / static_cast<float>(log_probs.rows);
  for (std::int64_t i = 0; i < log_probs.rows; ++i) {
    const float* row = log_probs.row(i);
    std::transform(row, row + log_probs.columns, grad.row(i),
                   [&](float v) { return weight * std::exp(v); });
    grad.row(i)[labels[i]] -= weight;
  }
}

std::int64_t correct_rows(MatrixView<const float> scores, const std::int64_t* labels) noexcept {
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < scores.rows; ++i) {
    const float* row = scores.row(i);
    correct += std::max_element(row, row + scores.columns) - row == labels[i] ? 1 : 0;
  }
  return correct;
}

}  // namespace ebb::inline v0::nn
