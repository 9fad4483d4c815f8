// SPDX-License-Identifier: Apache-2.0
// A fully connected layer with its activation. Used by the trainers' models, on one thread.
#pragma once

#include "parameter.h"

namespace ebb::inline v0::nn {

struct LinearOptions {
  std::string name = "linear";  // parameters are NAME.weight and NAME.bias
  std::int64_t in = 1;
  std::int64_t out = 1;
  Activation activation = Activation::none;
  std::uint64_t seed = 0;
};

// y = activation(x w^T + b). It remembers nothing of a step: the caller keeps x and y as long as
// backward needs them, and so decides when their memory is free.
//
//   Tensor y = layer.forward(x);
//   Tensor dx = layer.backward(x, y, dy);
class Linear {
 public:
  // Values are uniform within 1/sqrt(in), by seed and name. math must outlive the layer.
  Linear(DeviceMath& math, const LinearOptions& options);

  // Returns y [batch, out], charged to the current owner.
  Tensor forward(const Tensor& x, Place at = Place::here()) const;
  // Sets the gradients of the parameters, and returns the gradient with regard to x. dy, the
  // gradient with regard to y, is used up: it holds that before the activation afterwards.
  Tensor backward(const Tensor& x, const Tensor& y, const Tensor& dy, Place at = Place::here());
  // As backward, for a first layer: nobody needs the gradient with regard to the data.
  void backward_first(const Tensor& x, const Tensor& y, const Tensor& dy);

  Parameters parameters() { return {&weight_, &bias_}; }

 private:
  DeviceMath& math_;
  Activation activation_;
  Parameter weight_;
  Parameter bias_;
};

}  // namespace ebb::inline v0::nn
