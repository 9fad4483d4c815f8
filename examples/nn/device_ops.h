// SPDX-License-Identifier: Apache-2.0
// What a device with streams computes, on plain addresses that have been checked. Made for the
// simulated device by the program, for CUDA by a module that is loaded at run time: so it has none
// of ebb's types, whose code the module does not link. Used by StreamMath.
#pragma once

#include "activation.h"
#include "matrix.h"

#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::nn {

// Whether a call could be queued; code is 0 if so. The texts are never freed.
struct OpStatus {
  const char* call = nullptr;
  int code = 0;
  const char* reason = nullptr;
};

// Where an operation goes: the driver's handle of a stream, and memory that only operations on this
// stream use.
struct OpQueue {
  void* stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

// One matrix and what its rows should be.
struct Scored {
  MatrixView<const float> scores;
  const std::int64_t* labels = nullptr;  // one a row; a label that is no class makes the result NaN
};

// value, velocity and gradient, shaped alike.
struct SgdStep {
  MatrixView<float> values;
  MatrixView<float> velocities;
  MatrixView<const float> grads;
  float rate = 0;
  float momentum = 0;
};

// The operations of DeviceMath. Each is queued, or done at once where there is no queue; results
// are the same each time. One thread at a time.
class DeviceOps {
 public:
  DeviceOps() = default;
  DeviceOps(const DeviceOps&) = delete;
  DeviceOps& operator=(const DeviceOps&) = delete;
  DeviceOps(DeviceOps&&) = delete;
  DeviceOps& operator=(DeviceOps&&) = delete;
  virtual ~DeviceOps() = default;

  // Returns how much memory products want to work in.
  virtual std::size_t workspace_bytes() const noexcept = 0;

  virtual OpStatus multiply(const OpQueue& queue, MatrixView<const float> a,
                            MatrixView<const float> b, float beta,
                            MatrixView<float> c) noexcept = 0;
  // y = activation(y + bias), with bias a row.
  virtual OpStatus finish_linear(const OpQueue& queue, MatrixView<const float> bias,
                                 Activation activation, MatrixView<float> y) noexcept = 0;
  virtual OpStatus linear_grad(const OpQueue& queue, MatrixView<const float> y,
                               Activation activation, MatrixView<float> grad,
                               MatrixView<float> bias_grad) noexcept = 0;

  virtual OpStatus log_softmax(const OpQueue& queue, MatrixView<const float> x,
                               MatrixView<float> y) noexcept = 0;
  virtual OpStatus nll(const OpQueue& queue, const Scored& log_probs, float* loss) noexcept = 0;
  virtual OpStatus nll_grad(const OpQueue& queue, const Scored& log_probs,
                            MatrixView<float> grad) noexcept = 0;
  virtual OpStatus count_correct(const OpQueue& queue, const Scored& scores,
                                 std::int64_t* count) noexcept = 0;

  virtual OpStatus sgd(const OpQueue& queue, const SgdStep& step) noexcept = 0;
};

}  // namespace ebb::inline v0::nn
