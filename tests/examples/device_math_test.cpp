// SPDX-License-Identifier: Apache-2.0
// Products and losses against plain double-precision loops, shapes that are refused, and results
// that do not depend on the number of threads.
#include "nn_fixture.h"

#include <nn/gemm.h>

using ebb::Tensor;
using ebb::nn::Activation;
using ebb::test::nn_seed;
using ebb::test::NnFixture;

namespace {

double product(const Tensor& a, const Tensor& b, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t k = 0; k < a.size(1); ++k) {
    sum +=
        static_cast<double>(NnFixture::at(a, i, k)) * static_cast<double>(NnFixture::at(b, k, j));
  }
  return sum;
}

Tensor labels_of(ebb::Runtime& rt, const std::vector<std::int64_t>& values) {
  Tensor labels = ebb::empty(rt, {static_cast<std::int64_t>(values.size())}, ebb::DType::i64);
  std::copy(values.begin(), values.end(), labels.data<std::int64_t>());
  return labels;
}

}  // namespace

TEST_CASE_FIXTURE(NnFixture, "math: products agree with plain loops for all layouts and sizes") {
  ebb::Random random(nn_seed());
  for (int round = 0; round < 40; ++round) {
    const auto size = [&] { return static_cast<std::int64_t>(1 + random.below(300)); };
    const std::int64_t m = size();
    const std::int64_t n = size();
    const std::int64_t k = size();
    const bool a_transposed = random.below(2) == 1;
    const bool b_transposed = random.below(2) == 1;
    const float beta = random.below(2) == 1 ? 0.5f : 0.0f;
    const Tensor a =
        a_transposed ? random_matrix(k, m, random).transpose(0, 1) : random_matrix(m, k, random);
    const Tensor b =
        b_transposed ? random_matrix(n, k, random).transpose(0, 1) : random_matrix(k, n, random);
    const Tensor c = random_matrix(m, n, random);
    const Tensor before = c.clone();
    math->multiply(a, b, beta, c);
    double worst = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double wanted =
            product(a, b, i, j) + static_cast<double>(beta) * static_cast<double>(at(before, i, j));
        worst = std::max(worst, std::abs(static_cast<double>(at(c, i, j)) - wanted));
      }
    }
    INFO("m ", m, " n ", n, " k ", k, " at ", a_transposed, " bt ", b_transposed);
    REQUIRE(worst < 1e-4);
  }
}

TEST_CASE_FIXTURE(NnFixture, "math: beta zero reads nothing of the output") {
  ebb::Random random(3);
  const Tensor a = random_matrix(70, 40, random);
  const Tensor b = random_matrix(40, 90, random);
  const Tensor c = math->matrix(70, 90);
  c.fill_(std::nan(""));
  math->multiply(a, b, 0.0f, c);
  CHECK(std::abs(static_cast<double>(at(c, 69, 89)) - product(a, b, 69, 89)) < 1e-5);
}

TEST_CASE_FIXTURE(NnFixture, "math: a product writes nothing outside its output") {
  ebb::Random random(4);
  const Tensor whole = math->matrix(70, 90);
  whole.fill_(7);
  const Tensor inner = whole.narrow(0, 3, 60).narrow(1, 5, 70);
  math->multiply(random_matrix(60, 33, random), random_matrix(33, 70, random), 0.0f, inner);
  int untouched = 0;
  for (std::int64_t i = 0; i < 70; ++i) {
    for (std::int64_t j = 0; j < 90; ++j) {
      untouched += at(whole, i, j) == 7.0f ? 1 : 0;
    }
  }
  CHECK(untouched == 70 * 90 - 60 * 70);
}

TEST_CASE_FIXTURE(NnFixture, "math: linear adds the bias and applies the activation") {
  ebb::Random random(5);
  const Tensor x = random_matrix(130, 50, random);
  const Tensor w = random_matrix(77, 50, random);
  const Tensor bias = random_matrix(1, 77, random);
  const Tensor y = math->matrix(130, 77);
  for (Activation activation : {Activation::none, Activation::relu, Activation::tanh}) {
    math->linear(x, w, bias, activation, y);
    double worst = 0;
    for (std::int64_t i = 0; i < 130; ++i) {
      for (std::int64_t j = 0; j < 77; ++j) {
        double wanted = product(x, w.transpose(0, 1), i, j) + static_cast<double>(at(bias, 0, j));
        wanted = activation == Activation::tanh   ? std::tanh(wanted)
                 : activation == Activation::relu ? std::max(wanted, 0.0)
                                                  : wanted;
        worst = std::max(worst, std::abs(static_cast<double>(at(y, i, j)) - wanted));
      }
    }
    CHECK(worst < 1e-5);
  }
}

TEST_CASE_FIXTURE(NnFixture, "math: log-softmax sums to one, also for large scores") {
  const Tensor scores = math->matrix(2, 3);
  const float values[2][3] = {{1000, 1001, 1002}, {-5, 0, 5}};
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      at(scores, i, j) = values[i][j];
    }
  }
  math->log_softmax(scores, scores);
  for (std::int64_t i = 0; i < 2; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < 3; ++j) {
      sum += std::exp(static_cast<double>(at(scores, i, j)));
    }
    CHECK(sum == doctest::Approx(1.0).epsilon(1e-5));
  }
  CHECK(at(scores, 0, 2) == doctest::Approx(-0.4076059f));

  const Tensor loss = math->scalar();
  math->nll(scores, labels_of(rt, {2, 0}), loss);
  CHECK(loss.item<double>() ==
        doctest::Approx(
            -(static_cast<double>(at(scores, 0, 2)) + static_cast<double>(at(scores, 1, 0))) / 2));
  CHECK(math->count_correct(scores, labels_of(rt, {2, 0})) == 1);
  CHECK(math->count_correct(scores, labels_of(rt, {2, 2})) == 2);
}

TEST_CASE_FIXTURE(NnFixture, "math: the first of equal scores counts as the prediction") {
  const Tensor scores = math->matrix(1, 3);
  scores.fill_(1);
  CHECK(math->count_correct(scores, labels_of(rt, {0})) == 1);
  CHECK(math->count_correct(scores, labels_of(rt, {1})) == 0);
}

TEST_CASE_FIXTURE(NnFixture, "math: what does not fit is refused by name") {
  const Tensor a = math->matrix(4, 5);
  const Tensor c = math->matrix(4, 4);
  CHECK_THROWS_WITH_AS(math->multiply(a, a, 0, c),
                       "[gemm] cannot multiply [4, 5] by [4, 5] into [4, 4]",
                       std::invalid_argument);
  CHECK_THROWS_AS(math->multiply(a, a.transpose(0, 1), 0, c.transpose(0, 1)),
                  std::invalid_argument);
  CHECK_THROWS_AS(math->linear(a, math->matrix(3, 5), math->matrix(1, 4), Activation::none, c),
                  std::invalid_argument);
  CHECK_THROWS_AS(math->log_softmax(a, c), std::invalid_argument);
  const Tensor loss = math->scalar();
  CHECK_THROWS_WITH_AS(math->nll(a, labels_of(rt, {0, 1, 5, 0}), loss),
                       "[DeviceMath::nll] label 5 is none of 5 classes, numbered from 0",
                       std::invalid_argument);
  CHECK_THROWS_AS(math->nll(a, labels_of(rt, {0, 1, -1, 0}), loss), std::invalid_argument);
  CHECK_THROWS_AS(math->nll(a, labels_of(rt, {0, 1}), loss), std::invalid_argument);
  CHECK_THROWS_AS(math->sgd(a, c, a, 0.1f, 0), std::invalid_argument);
  CHECK_THROWS_AS(ebb::nn::make_math(rt, {ebb::DeviceKind::cuda, 0}), std::invalid_argument);
}

TEST_CASE("math: results are the same bits on 1, 2, 3 and 4 threads") {
  const auto run = [](unsigned threads) {
    // On std::jthread: TBB gives no more threads than there are cores.
    NnFixture f({.threads = threads, .executor = ebb::ExecutorKind::jthread});
    ebb::Random random(11);
    const Tensor x = f.random_matrix(64, 784, random);
    const Tensor w = f.random_matrix(512, 784, random);
    const Tensor bias = f.random_matrix(1, 512, random);
    const Tensor y = f.math->matrix(64, 512);
    const Tensor dw = f.math->matrix(512, 784);
    const Tensor dx = f.math->matrix(64, 784);
    const Tensor db = f.math->matrix(1, 512);
    f.math->linear(x, w, bias, Activation::tanh, y);
    const Tensor grad = f.random_matrix(64, 512, random);
    f.math->linear_grad(y, Activation::tanh, grad, db);
    f.math->multiply(grad.transpose(0, 1), x, 0, dw);
    f.math->multiply(grad, w, 0, dx);
    std::vector<float> all;
    for (const Tensor& t : {y, grad, db, dw, dx}) {
      const std::vector<float> part = NnFixture::numbers(t);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const std::vector<float> one = run(1);
  for (unsigned threads : {2u, 3u, 4u}) {
    CHECK(run(threads) == one);
  }
}

TEST_CASE("math: rows are padded to cache lines, and never a multiple of 1 KiB apart") {
  CHECK(ebb::nn::padded_stride(10) == 16);
  CHECK(ebb::nn::padded_stride(784) == 784);
  CHECK(ebb::nn::padded_stride(512) == 528);
  for (std::int64_t columns = 1; columns < 3000; ++columns) {
    const std::int64_t stride = ebb::nn::padded_stride(columns);
    REQUIRE(stride >= columns);
    REQUIRE(stride % 16 == 0);
    REQUIRE(stride % 256 != 0);
  }
}
