// SPDX-License-Identifier: Apache-2.0
// What training changes: a value, its gradient, and a name. Used by layers, optimizers and files of
// weights, on the trainer's thread.
#pragma once

#include "device_math.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ebb::inline v0::nn {

// Both tensors are long-lived: values are made with the layer, gradients by the first backward
// (a network that only predicts has none), and every backward overwrites them. So nothing has to be
// zeroed, and only activations and their gradients come and go with an iteration.
struct Parameter {
  std::string name;
  Tensor value;
  Tensor grad;  // undefined until the first backward
};

// What optimizers and files take: borrowed, in the order of the layers.
using Parameters = std::vector<Parameter*>;

// Returns a parameter of shape [rows, columns] with values uniform in [-bound, bound), which depend
// on seed and name only.
Parameter make_parameter(DeviceMath& math, std::string name, std::int64_t rows,
                         std::int64_t columns, float bound, std::uint64_t seed);

// Returns the gradient of parameter, which it makes if there is none.
const Tensor& grad_of(DeviceMath& math, Parameter& parameter);

}  // namespace ebb::inline v0::nn
