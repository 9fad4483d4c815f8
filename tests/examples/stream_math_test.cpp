// SPDX-License-Identifier: Apache-2.0
// The math of devices with streams, on the simulated one: what it computes, that it waits for
// nothing, and what it refuses.
#include "two_maths.h"

#include <ebb/alloc/devices.h>

#include <chrono>
#include <thread>

#include <nn/linear.h>
#include <nn/sgd.h>

using ebb::Tensor;
using ebb::nn::Activation;
using ebb::test::TwoMaths;

TEST_CASE("stream math: the simulated device computes what the CPU does") {
  TwoMaths two(ebb::DeviceKind::sim);
  check_all(two);
  CHECK(two.machine.violations().empty());
}

TEST_CASE("stream math: a label that is no class makes the result NaN") {
  TwoMaths two(ebb::DeviceKind::sim);
  check_wrong_labels(two);
}

TEST_CASE("stream math: operations are queued, and wait for no device") {
  TwoMaths two(ebb::DeviceKind::sim);
  const Tensor a = two.there(two.random(8, 8));
  const Tensor c = two.math->matrix(8, 8);
  c.fill_(7);
  REQUIRE(two.machine.drain());
  two.machine.hold_all();
  two.math->multiply(a, a, 0.0f, c);
  two.math->log_softmax(c, c);
  CHECK_FALSE(two.machine.is_idle());
  two.machine.resume_all();
  const Tensor expected = two.host->matrix(8, 8);
  two.host->multiply(a.to(ebb::cpu), a.to(ebb::cpu), 0.0f, expected);
  two.host->log_softmax(expected, expected);
  CHECK(two.difference(expected, c) < 1e-6);
}

TEST_CASE("stream math: work is on the thread's current stream, and in order with others") {
  TwoMaths two(ebb::DeviceKind::sim);
  const ebb::Stream own = two.math->stream();
  const Tensor x = two.there(two.random(8, 8));
  const Tensor a = two.math->matrix(8, 8);
  const ebb::DeviceStream other(two.rt, two.device);
  CHECK(own != other.stream());
  Tensor c;
  two.machine.hold(own);
  two.math->log_softmax(x, a);
  {
    const ebb::StreamScope on(two.rt, other);
    CHECK(two.math->stream() == other.stream());
    c = two.math->matrix(8, 8);
    CHECK(c.storage().stream() == other.stream());
    two.math->multiply(a, a, 0.0f, c);  // of what the held stream has yet to write
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  two.machine.resume(own);
  const Tensor expected = two.host->matrix(8, 8);
  two.host->multiply(a.to(ebb::cpu), a.to(ebb::cpu), 0.0f, expected);
  CHECK(two.difference(expected, c) < 1e-5);
  CHECK(two.machine.violations().empty());
}

TEST_CASE("stream math: tensors elsewhere and shapes that do not fit are refused") {
  TwoMaths two(ebb::DeviceKind::sim);
  const Tensor here = two.random(4, 4);
  const Tensor there = two.there(here);
  CHECK_THROWS_WITH_AS(two.math->multiply(here, there, 0.0f, there),
                       "[DeviceMath::multiply] needs tensors on sim:0, not on cpu: use to()",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(two.math->multiply(there, two.there(two.random(5, 4)), 0.0f, there),
                       doctest::Contains("cannot multiply [4, 4] by [5, 4]"),
                       std::invalid_argument);
  CHECK_THROWS_AS(two.math->nll(there, two.there(two.labels({1})), two.math->scalar()),
                  std::invalid_argument);
}

TEST_CASE("stream math: without a CUDA device or its module the message says what is missing") {
  if (ebb::devices().size() == 1) {
    ebb::Runtime rt;
    CHECK_THROWS_WITH_AS(ebb::nn::make_math(rt, {ebb::DeviceKind::cuda, 0}),
                         doctest::Contains("[make_math] "), std::invalid_argument);
  }
}

TEST_CASE("stream math: a layer learns on the simulated device as it does on the CPU") {
  TwoMaths two(ebb::DeviceKind::sim);
  const Tensor x = two.random(16, 12);
  const Tensor labels = two.labels({0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
  const auto train = [&](ebb::nn::DeviceMath& math) {
    ebb::nn::Linear layer(math, {"layer", 12, 3, Activation::none, 1});
    ebb::nn::Parameters parameters;
    for (ebb::nn::Parameter* parameter : layer.parameters()) {
      parameters.push_back(parameter);
    }
    ebb::nn::Sgd sgd(math, parameters, {.rate = 0.1f, .momentum = 0.5f});
    const Tensor in = bring(math, x);
    const Tensor targets = bring(math, labels);
    std::vector<float> losses;
    for (int step = 0; step < 20; ++step) {
      const Tensor y = layer.forward(in);
      const Tensor loss = math.scalar();
      math.log_softmax(y, y);
      math.nll(y, targets, loss);
      math.nll_grad(y, targets, y);
      layer.backward_first(in, y, y);
      sgd.step();
      losses.push_back(loss.item<float>());
    }
    return losses;
  };
  const std::vector<float> host = train(*two.host);
  const std::vector<float> there = train(*two.math);
  CHECK(host.back() < host.front());
  for (std::size_t i = 0; i < host.size(); ++i) {
    CHECK(there[i] == doctest::Approx(host[i]).epsilon(1e-4));
  }
}
