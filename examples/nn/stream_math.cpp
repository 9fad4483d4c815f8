// SPDX-License-Identifier: Apache-2.0
// Checks shapes and devices, declares to the runtime what each operation uses, and queues it.
#include "stream_math.h"

#include "operands.h"

#include <ebb/alloc/error.h>

#include <stdexcept>
#include <string>

namespace ebb::inline v0::nn {

StreamMath::StreamMath(Runtime& rt, Device device, std::shared_ptr<DeviceOps> ops, Worker worker)
    : rt_(rt), ops_(std::move(ops)), worker_(worker), own_(rt, device) {}

Stream StreamMath::stream() const {
  const Stream current = rt_.owner().stream();
  return current.device == device() ? current : own_.stream();
}

// Without the padding that the CPU's caches want: a device fills and copies contiguous tensors
// best.
Tensor StreamMath::matrix(std::int64_t rows, std::int64_t columns, Place at) {
  return empty_here({rows, columns}, DType::f32, at);
}

Tensor StreamMath::scalar(Place at) {
  return empty_here(Shape{}, DType::f32, at);
}

Tensor StreamMath::empty_here(const Shape& shape, DType dtype, Place at) {
  return empty(rt_.owner().on(stream()), shape, dtype, at);
}

void StreamMath::require(const OpStatus& status) const {
  if (status.code != 0) {
    throw DeviceError(status.call, status.code, to_string(device()), status.reason);
  }
}

template <class Op>
void StreamMath::queue(const char* function, Operands tensors, Op op) {
  for (const Tensor& tensor : tensors) {
    if (!(tensor.device() == device())) {
      refuse(function, "needs tensors on " + to_string(device()) + ", not on " +
                           to_string(tensor.device()) + ": use to()");
    }
  }
  const Stream on = stream();
  OpStatus status;
  if (worker_ == Worker::ops) {
    launch(rt_, on, tensors, [&](void* /*handle*/) {
      launch_host(rt_, on, [ops = ops_, op] {
        const OpStatus done = op(*ops, OpQueue{});
        if (done.code != 0) {
          throw std::runtime_error(std::string("[") + done.call + "] " + done.reason);
        }
      });
    });
  } else {
    const Tensor& workspace = workspace_on(on);
    launch(rt_, on, tensors, [&](void* handle) {
      status =
          op(*ops_, OpQueue{handle, workspace.data<std::uint8_t>(), workspace.bytes().count()});
    });
  }
  require(status);
}

// Long-lived, so that a graph that was captured finds it where it was.
const Tensor& StreamMath::workspace_on(Stream stream) {
  for (const auto& [known, workspace] : workspaces_) {
    if (known == stream) {
      return workspace;
    }
  }
  const LongLived own(rt_);
  const Shape shape{static_cast<std::int64_t>(ops_->workspace_bytes())};
  return workspaces_.emplace_back(stream, empty(rt_.owner().on(stream), shape, DType::u8)).second;
}

void StreamMath::multiply(const Tensor& a, const Tensor& b, float beta, const Tensor& c) {
  constexpr const char* function = "DeviceMath::multiply";
  const auto left = matrix_of<const float>(a, function);
  const auto right = matrix_of<const float>(b, function);
  const auto out = rows_of<float>(c, function);
  require_product(left, right, out, function);
  queue(function, {a, b, c}, [=](DeviceOps& ops, const OpQueue& on) {
    return ops.multiply(on, left, right, beta, out);
  });
}

void StreamMath::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
                        const Tensor& y) {
  constexpr const char* function = "DeviceMath::linear";
  const auto in = matrix_of<const float>(x, function);
  const auto weights = transposed(rows_of<const float>(w, function));
  const auto biases = row_of<const float>(bias, weights.columns, "bias", function);
  const auto out = rows_of<float>(y, function);
  require_product(in, weights, out, function);
  queue(function, {x, w, bias, y}, [=](DeviceOps& ops, const OpQueue& on) {
    const OpStatus status = ops.multiply(on, in, weights, 0.0f, out);
    return status.code != 0 ? status : ops.finish_linear(on, biases, activation, out);
  });
}

void StreamMath::linear_grad(const Tensor& y, Activation activation, const Tensor& grad,
                             const Tensor& bias_grad) {
  constexpr const char* function = "DeviceMath::linear_grad";
  const auto outputs = rows_of<const float>(y, function);
  const auto grads = rows_of<float>(grad, function);
  const auto sums = row_of<float>(bias_grad, grads.columns, "bias_grad", function);
  require_same_shape(outputs, grads, function);
  queue(function, {y, grad, bias_grad}, [=](DeviceOps& ops, const OpQueue& on) {
    return ops.linear_grad(on, outputs, activation, grads, sums);
  });
}

void StreamMath::log_softmax(const Tensor& x, const Tensor& y) {
  constexpr const char* function = "DeviceMath::log_softmax";
  const auto in = rows_of<const float>(x, function);
  const auto out = rows_of<float>(y, function);
  require_same_shape(in, out, function);
  queue(function, {x, y},
        [=](DeviceOps& ops, const OpQueue& on) { return ops.log_softmax(on, in, out); });
}

Scored StreamMath::scored(const Tensor& scores, const Tensor& labels, const char* function) const {
  const auto rows = rows_of<const float>(scores, function);
  require_labels(labels, rows.rows, function);
  if (!labels.is_contiguous()) {
    refuse(function, "needs labels that are contiguous");
  }
  return {rows, labels.data<const std::int64_t>()};
}

void StreamMath::nll(const Tensor& log_probs, const Tensor& labels, const Tensor& loss) {
  constexpr const char* function = "DeviceMath::nll";
  const Scored in = scored(log_probs, labels, function);
  auto* const out = loss.data<float>();
  queue(function, {log_probs, labels, loss},
        [=](DeviceOps& ops, const OpQueue& on) { return ops.nll(on, in, out); });
}

void StreamMath::nll_grad(const Tensor& log_probs, const Tensor& labels, const Tensor& grad) {
  constexpr const char* function = "DeviceMath::nll_grad";
  const Scored in = scored(log_probs, labels, function);
  const auto out = rows_of<float>(grad, function);
  require_same_shape(in.scores, out, function);
  queue(function, {log_probs, labels, grad},
        [=](DeviceOps& ops, const OpQueue& on) { return ops.nll_grad(on, in, out); });
}

std::int64_t StreamMath::count_correct(const Tensor& scores, const Tensor& labels) {
  constexpr const char* function = "DeviceMath::count_correct";
  const Scored in = scored(scores, labels, function);
  const Tensor count = empty_here(Shape{}, DType::i64, Place::here());
  auto* const out = count.data<std::int64_t>();
  queue(function, {scores, labels, count},
        [=](DeviceOps& ops, const OpQueue& on) { return ops.count_correct(on, in, out); });
  return count.item<std::int64_t>();
}

void StreamMath::sgd(const Tensor& value, const Tensor& velocity, const Tensor& grad, float rate,
                     float momentum) {
  constexpr const char* function = "DeviceMath::sgd";
  const SgdStep step{rows_of<float>(value, function), rows_of<float>(velocity, function),
                     rows_of<const float>(grad, function), rate, momentum};
  require_same_shape(step.values, step.velocities, function);
  require_same_shape(step.values, step.grads, function);
  queue(function, {value, velocity, grad},
        [=](DeviceOps& ops, const OpQueue& on) { return ops.sgd(on, step); });
}

}  // namespace ebb::inline v0::nn
