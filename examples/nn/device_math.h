// SPDX-License-Identifier: Apache-2.0
// The seam between layers and the device that computes: every operation a layer or an optimizer
// needs, on matrices that the same object makes. Used by the trainers, on the thread of their loop.
//
// Shared by all of it: a matrix is an f32 tensor of two dimensions one of whose strides is 1 (a
// transposed view counts); labels are i64 of one dimension. Outputs must not overlap inputs unless
// it says so. Wrong shapes, types or devices throw std::invalid_argument.
#pragma once

#include "activation.h"

#include <ebb/runtime/runtime.h>

#include <cstdint>
#include <memory>

namespace ebb::inline v0::nn {

// Results do not depend on the number of threads.
class DeviceMath {
 public:
  DeviceMath() = default;
  DeviceMath(const DeviceMath&) = delete;
  DeviceMath& operator=(const DeviceMath&) = delete;
  DeviceMath(DeviceMath&&) = delete;
  DeviceMath& operator=(DeviceMath&&) = delete;
  virtual ~DeviceMath() = default;

  virtual Runtime& runtime() const noexcept = 0;
  virtual Device device() const noexcept = 0;
  // Returns the stream that matrices are made on and work is queued on.
  virtual Stream stream() const = 0;

  // Returns an uninitialised matrix that is charged to the current owner. Its rows are padded where
  // that makes the products faster, so it need not be contiguous.
  virtual Tensor matrix(std::int64_t rows, std::int64_t columns, Place at = Place::here()) = 0;
  // Returns an uninitialised tensor of no dimension.
  virtual Tensor scalar(Place at = Place::here()) = 0;

  // c = a b + beta c. c's rows are contiguous, and beta = 0 reads nothing of it.
  virtual void multiply(const Tensor& a, const Tensor& b, float beta, const Tensor& c) = 0;
  // y = activation(x w^T + bias), with w [out, in] and bias [1, out].
  virtual void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
                      const Tensor& y) = 0;
  // grad = grad * activation'(y) in place, and bias_grad [1, out] = its sums over the rows.
  virtual void linear_grad(const Tensor& y, Activation activation, const Tensor& grad,
                           const Tensor& bias_grad) = 0;

  // y = log(softmax(x)) by rows; y may be x.
  virtual void log_softmax(const Tensor& x, const Tensor& y) = 0;
  // loss = the mean over the rows of -log_probs[row][labels[row]].
  virtual void nll(const Tensor& log_probs, const Tensor& labels, const Tensor& loss) = 0;
  // grad = the gradient of nll(log_softmax(x)) with regard to x; grad may be log_probs.
  virtual void nll_grad(const Tensor& log_probs, const Tensor& labels, const Tensor& grad) = 0;
  // Returns how many rows have their largest score at the label. The first of equals counts.
  virtual std::int64_t count_correct(const Tensor& scores, const Tensor& labels) = 0;

  // velocity = momentum velocity + grad; value = value - rate velocity. The three are shaped alike.
  virtual void sgd(const Tensor& value, const Tensor& velocity, const Tensor& grad, float rate,
                   float momentum) = 0;
};

// Returns the math of a device. rt must outlive it. Throws std::invalid_argument for a device that
// this build has no math for, and what is missing.
std::unique_ptr<DeviceMath> make_math(Runtime& rt, Device device = cpu);

// Returns tensor where it is on math's device, else a copy there, charged to the current owner.
Tensor bring(const DeviceMath& math, const Tensor& tensor, Place at = Place::here());

}  // namespace ebb::inline v0::nn
