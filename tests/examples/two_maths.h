// SPDX-License-Identifier: Apache-2.0
// The CPU's math beside a device's, and checks that they compute the same. Used by the tests of
// StreamMath. One thread.
#pragma once

#include "nn_fixture.h"

#include <ebb/alloc/sim.h>
#include <ebb/runtime/device_stream.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace ebb::test {

using nn::Activation;

// A CPU and a device, with the math of both.
struct TwoMaths {
  explicit TwoMaths(DeviceKind kind) : device{kind, 0}, rt(options()) {}

  RuntimeOptions options() {
    RuntimeOptions options = nn_options(2);
    options.devices.push_back(device);
    if (device.kind == DeviceKind::sim) {
      options.backend = machine.backend();
    }
    return options;
  }
  Tensor random(std::int64_t rows, std::int64_t columns) {
    const Tensor m = host->matrix(rows, columns);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        NnFixture::at(m, i, j) = numbers.uniform(-1.0f, 1.0f);
      }
    }
    return m;
  }
  Tensor labels(std::initializer_list<std::int64_t> values) {
    Tensor labels = empty(rt, {static_cast<std::int64_t>(values.size())}, DType::i64);
    std::copy(values.begin(), values.end(), labels.data<std::int64_t>());
    return labels;
  }
  // The same numbers on the device, in a matrix of its math.
  Tensor there(const Tensor& tensor) { return bring(*math, tensor); }
  // Returns the largest difference.
  double difference(const Tensor& on_host, const Tensor& on_device) {
    const std::vector<float> a = NnFixture::numbers(on_host);
    const std::vector<float> b = NnFixture::numbers(on_device.to(cpu));
    REQUIRE(a.size() == b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      worst = std::isnan(apart) ? apart : std::max(worst, apart);
    }
    return worst;
  }

  SimMachine machine;
  Device device;
  Runtime rt;
  LongLived own{rt};
  Random numbers{7};
  std::unique_ptr<nn::DeviceMath> host = nn::make_math(rt);
  std::unique_ptr<nn::DeviceMath> math = nn::make_math(rt, device);
};

inline void check_layer(TwoMaths& two, Activation activation) {
  const Tensor x = two.random(33, 70);
  const Tensor w = two.random(41, 70);
  const Tensor bias = two.random(1, 41);
  const Tensor y = two.host->matrix(33, 41);
  const Tensor y_there = two.math->matrix(33, 41);
  two.host->linear(x, w, bias, activation, y);
  two.math->linear(two.there(x), two.there(w), two.there(bias), activation, y_there);
  CHECK(two.difference(y, y_there) < 1e-5);

  const Tensor grad = two.random(33, 41);
  const Tensor grad_there = two.there(grad);
  const Tensor sums = two.host->matrix(1, 41);
  const Tensor sums_there = two.math->matrix(1, 41);
  two.host->linear_grad(y, activation, grad, sums);
  two.math->linear_grad(y_there, activation, grad_there, sums_there);
  CHECK(two.difference(grad, grad_there) < 1e-5);
  CHECK(two.difference(sums, sums_there) < 1e-4);
}

inline void check_products(TwoMaths& two) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const float beta : {0.0f, 0.5f}) {
        CAPTURE(a_transposed);
        CAPTURE(b_transposed);
        const Tensor a = a_transposed ? two.random(50, 33) : two.random(33, 50);
        const Tensor b = b_transposed ? two.random(20, 50) : two.random(50, 20);
        const Tensor c = two.random(33, 20);
        const Tensor c_there = two.there(c);
        const auto turned = [](const Tensor& m, bool yes) { return yes ? m.transpose(0, 1) : m; };
        two.host->multiply(turned(a, a_transposed), turned(b, b_transposed), beta, c);
        two.math->multiply(turned(two.there(a), a_transposed), turned(two.there(b), b_transposed),
                           beta, c_there);
        CHECK(two.difference(c, c_there) < 1e-5);
      }
    }
  }
}

inline void check_losses(TwoMaths& two) {
  const Tensor scores = two.random(5, 77);
  NnFixture::at(scores, 1, 3) = 2.0f;
  NnFixture::at(scores, 1, 40) = 2.0f;  // the first of equals counts
  const Tensor labels = two.labels({0, 3, 76, 12, 50});
  const Tensor scores_there = two.there(scores);
  const Tensor labels_there = two.there(labels);
  CHECK(two.math->count_correct(scores_there, labels_there) ==
        two.host->count_correct(scores, labels));
  CHECK(two.math->count_correct(scores_there, labels_there) >= 1);

  two.host->log_softmax(scores, scores);
  two.math->log_softmax(scores_there, scores_there);
  CHECK(two.difference(scores, scores_there) < 1e-5);
  const Tensor loss = two.host->scalar();
  const Tensor loss_there = two.math->scalar();
  two.host->nll(scores, labels, loss);
  two.math->nll(scores_there, labels_there, loss_there);
  CHECK(two.difference(loss, loss_there) < 1e-5);
  two.host->nll_grad(scores, labels, scores);
  two.math->nll_grad(scores_there, labels_there, scores_there);
  CHECK(two.difference(scores, scores_there) < 1e-6);
}

inline void check_update(TwoMaths& two) {
  const Tensor value = two.random(30, 77);
  const Tensor velocity = two.random(30, 77);
  const Tensor grad = two.random(30, 77);
  const Tensor value_there = two.there(value);
  const Tensor velocity_there = two.there(velocity);
  const Tensor grad_there = two.there(grad);
  for (int step = 0; step < 3; ++step) {
    two.host->sgd(value, velocity, grad, 0.1f, 0.5f);
    two.math->sgd(value_there, velocity_there, grad_there, 0.1f, 0.5f);
  }
  CHECK(two.difference(value, value_there) < 1e-5);
  CHECK(two.difference(velocity, velocity_there) < 1e-5);
}

inline void check_all(TwoMaths& two) {
  check_products(two);
  for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh}) {
    check_layer(two, activation);
  }
  check_losses(two);
  check_update(two);
}

inline void check_wrong_labels(TwoMaths& two) {
  const Tensor log_probs = two.there(two.random(2, 3));
  const Tensor labels = two.there(two.labels({1, 3}));
  const Tensor loss = two.math->scalar();
  two.math->nll(log_probs, labels, loss);
  CHECK(std::isnan(loss.item<float>()));
  const Tensor grad = two.math->matrix(2, 3);
  two.math->nll_grad(log_probs, labels, grad);
  CHECK(std::isnan(NnFixture::numbers(grad.to(cpu)).back()));
}

}  // namespace ebb::test
