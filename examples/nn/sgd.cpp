// SPDX-License-Identifier: Apache-2.0
// The optimizer's state and step.
#include "sgd.h"

#include <cmath>
#include <stdexcept>
#include <utility>

namespace ebb::inline v0::nn {

Sgd::Sgd(DeviceMath& math, Parameters parameters, SgdOptions options)
    : math_(math), parameters_(std::move(parameters)), options_(options) {
  if (!(options.rate > 0.0f) || !std::isfinite(options.rate)) {
    throw std::invalid_argument("[Sgd] the rate must be positive");
  }
  if (!(options.momentum >= 0.0f) || !(options.momentum < 1.0f)) {
    throw std::invalid_argument("[Sgd] the momentum must be at least 0 and less than 1");
  }
}

void Sgd::make_velocities() {
  const LongLived own(math_.runtime());
  velocities_.reserve(parameters_.size());
  for (const Parameter* parameter : parameters_) {
    velocities_.push_back(math_.matrix(parameter->value.size(0), parameter->value.size(1)));
    velocities_.back().fill_(0);
  }
}

void Sgd::step() {
  if (velocities_.empty()) {
    make_velocities();
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = *parameters_[i];
    if (parameter.grad.defined()) {
      math_.sgd(parameter.value, velocities_[i], parameter.grad, options_.rate, options_.momentum);
    }
  }
}

}  // namespace ebb::inline v0::nn
