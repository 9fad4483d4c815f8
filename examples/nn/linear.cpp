// SPDX-License-Identifier: Apache-2.0
// Forward and backward of the fully connected layer.
#include "linear.h"

#include <cmath>

namespace ebb::inline v0::nn {

namespace {

float bound_of(const LinearOptions& options) {
  if (options.in < 1 || options.out < 1) {
    throw std::invalid_argument("[Linear] " + options.name +
                                " needs at least one input and one output");
  }
  return 1.0f / std::sqrt(static_cast<float>(options.in));
}

}  // namespace

Linear::Linear(DeviceMath& math, const LinearOptions& options)
    : math_(math),
      activation_(options.activation),
      weight_(make_parameter(math, options.name + ".weight", options.out, options.in,
                             bound_of(options), options.seed)),
      bias_(make_parameter(math, options.name + ".bias", 1, options.out, bound_of(options),
                           options.seed)) {}

Tensor Linear::forward(const Tensor& x, Place at) const {
  Tensor y = math_.matrix(x.size(0), weight_.value.size(0), at);
  math_.linear(x, weight_.value, bias_.value, activation_, y);
  return y;
}

void Linear::backward_first(const Tensor& x, const Tensor& y, const Tensor& dy) {
  math_.linear_grad(y, activation_, dy, grad_of(math_, bias_));
  math_.multiply(dy.transpose(0, 1), x, 0.0f, grad_of(math_, weight_));
}

Tensor Linear::backward(const Tensor& x, const Tensor& y, const Tensor& dy, Place at) {
  backward_first(x, y, dy);
  Tensor dx = math_.matrix(x.size(0), x.size(1), at);
  math_.multiply(dy, weight_.value, 0.0f, dx);
  return dx;
}

}  // namespace ebb::inline v0::nn
