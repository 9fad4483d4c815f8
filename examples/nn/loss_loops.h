// SPDX-License-Identifier: Apache-2.0
// The loops of the losses over plain addresses. Used on the CPU and on the simulated device. Pure
// functions, no call of ebb's: any thread.
#pragma once

#include "matrix.h"

#include <cstdint>

namespace ebb::inline v0::nn {

// Labels are one a row, and classes all of them. Shapes are alike; outputs may be the inputs.
void log_softmax_rows(MatrixView<const float> x, MatrixView<float> y) noexcept;
float mean_nll(MatrixView<const float> log_probs, const std::int64_t* labels) noexcept;
void nll_grad_rows(MatrixView<const float> log_probs, const std::int64_t* labels,
                   MatrixView<float> grad) noexcept;
std::int64_t correct_rows(MatrixView<const float> scores, const std::int64_t* labels) noexcept;

}  // namespace ebb::inline v0::nn
