// SPDX-License-Identifier: Apache-2.0
// Math on a device with streams: tensors are checked here, and what is to be done is queued. Made
// by make_math. Thread rule: the trainer's thread.
#pragma once

#include "device_math.h"
#include "device_ops.h"

#include <ebb/runtime/device_stream.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace ebb::inline v0::nn {

// Everything is on the thread's current stream, if that is one of the device's, else on a stream of
// its own. Nothing waits for the device but count_correct. Labels are not looked at: one that is no
// class makes the result NaN.
class StreamMath final : public DeviceMath {
 public:
  // Who works: the device, which ops give work by a stream's handle; or ops themselves, called in
  // the stream's order, as for simulated devices.
  enum class Worker { device, ops };

  StreamMath(Runtime& rt, Device device, std::shared_ptr<DeviceOps> ops, Worker worker);

  Runtime& runtime() const noexcept override { return rt_; }
  Device device() const noexcept override { return own_.device(); }
  Stream stream() const override;

  Tensor matrix(std::int64_t rows, std::int64_t columns, Place at) override;
  Tensor scalar(Place at) override;

  void multiply(const Tensor& a, const Tensor& b, float beta, const Tensor& c) override;
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
              const Tensor& y) override;
  void linear_grad(const Tensor& y, Activation activation, const Tensor& grad,
                   const Tensor& bias_grad) override;

  void log_softmax(const Tensor& x, const Tensor& y) override;
  void nll(const Tensor& log_probs, const Tensor& labels, const Tensor& loss) override;
  void nll_grad(const Tensor& log_probs, const Tensor& labels, const Tensor& grad) override;
  std::int64_t count_correct(const Tensor& scores, const Tensor& labels) override;

  void sgd(const Tensor& value, const Tensor& velocity, const Tensor& grad, float rate,
           float momentum) override;

 private:
  using Operands = std::initializer_list<std::reference_wrapper<const Tensor>>;

  // Queues op(ops, queue), which uses the tensors and returns an OpStatus.
  template <class Op>
  void queue(const char* function, Operands tensors, Op op);
  Tensor empty_here(const Shape& shape, DType dtype, Place at);
  Scored scored(const Tensor& scores, const Tensor& labels, const char* function) const;
  const Tensor& workspace_on(Stream stream);
  void require(const OpStatus& status) const;

  Runtime& rt_;
  const std::shared_ptr<DeviceOps> ops_;  // shared with what is queued on the host
  const Worker worker_;
  const DeviceStream own_;
  std::vector<std::pair<Stream, Tensor>> workspaces_;  // one a stream, which is used in order
};

}  // namespace ebb::inline v0::nn
