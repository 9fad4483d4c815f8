// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum. Used by the trainers' models, on one thread.
#pragma once

#include "parameter.h"

namespace ebb::inline v0::nn {

struct SgdOptions {
  float rate = 0.01f;
  float momentum = 0.0f;
};

// velocity = momentum velocity + gradient; value = value - rate velocity.
class Sgd {
 public:
  // Throws std::invalid_argument for a rate that is not positive, or a momentum outside [0, 1).
  Sgd(DeviceMath& math, Parameters parameters, SgdOptions options);

  // Updates every parameter that has a gradient. The first step makes the velocities, long-lived
  // though it runs inside an iteration.
  void step();

 private:
  void make_velocities();

  DeviceMath& math_;
  Parameters parameters_;
  SgdOptions options_;
  std::vector<Tensor> velocities_;
};

}  // namespace ebb::inline v0::nn
