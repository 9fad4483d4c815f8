// SPDX-License-Identifier: Apache-2.0
// The math of a CUDA device: the module loads, and computes what the CPU does.
#include "two_maths.h"

using ebb::Tensor;
using ebb::test::NnFixture;
using ebb::test::TwoMaths;

TEST_CASE("cuda math: a CUDA device computes what the CPU does") {
  TwoMaths two(ebb::DeviceKind::cuda);
  check_all(two);
}

TEST_CASE("cuda math: a label that is no class makes the result NaN") {
  TwoMaths two(ebb::DeviceKind::cuda);
  check_wrong_labels(two);
}

TEST_CASE("cuda math: results are the same bits each time") {
  TwoMaths two(ebb::DeviceKind::cuda);
  const Tensor x = two.there(two.random(300, 500));
  const Tensor w = two.there(two.random(200, 500));
  const Tensor bias = two.there(two.random(1, 200));
  const auto compute = [&] {
    const Tensor y = two.math->matrix(300, 200);
    const Tensor sums = two.math->matrix(1, 200);
    two.math->linear(x, w, bias, ebb::nn::Activation::tanh, y);
    two.math->linear_grad(y, ebb::nn::Activation::tanh, y, sums);
    return NnFixture::numbers(sums.to(ebb::cpu));
  };
  const std::vector<float> first = compute();
  for (int round = 0; round < 10; ++round) {
    CHECK(compute() == first);
  }
}
