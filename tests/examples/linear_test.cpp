// SPDX-License-Identifier: Apache-2.0
// Layers and the optimizer: gradients against differences, momentum by hand, and whose memory what
// they make is.
#include "nn_fixture.h"

#include <ebb/runtime/loop.h>

#include <nn/linear.h>
#include <nn/sgd.h>

using ebb::Tensor;
using ebb::nn::Activation;
using ebb::nn::Linear;
using ebb::test::nn_seed;
using ebb::test::NnFixture;

namespace {

// A network of two layers and its loss, in double precision and without any of the code under
// test: the oracle of the gradients.
struct Reference {
  const Tensor& x;
  const Tensor& labels;
  std::vector<ebb::nn::Parameter*> p;
  Activation activation;

  std::vector<double> layer(const std::vector<double>& in, const ebb::nn::Parameter& w,
                            const ebb::nn::Parameter& b, bool activate) const {
    std::vector<double> out;
    for (std::int64_t o = 0; o < w.value.size(0); ++o) {
      double sum = static_cast<double>(NnFixture::at(b.value, 0, o));
      for (std::size_t i = 0; i < in.size(); ++i) {
        sum += in[i] * static_cast<double>(NnFixture::at(w.value, o, static_cast<std::int64_t>(i)));
      }
      const bool relu = activation == Activation::relu;
      out.push_back(!activate ? sum : relu ? std::max(sum, 0.0) : std::tanh(sum));
    }
    return out;
  }
  double loss() const {
    double total = 0;
    for (std::int64_t n = 0; n < x.size(0); ++n) {
      std::vector<double> row;
      for (std::int64_t i = 0; i < x.size(1); ++i) {
        row.push_back(static_cast<double>(NnFixture::at(x, n, i)));
      }
      const std::vector<double> scores = layer(layer(row, *p[0], *p[1], true), *p[2], *p[3], false);
      double sum = 0;
      for (double score : scores) {
        sum += std::exp(score);
      }
      total +=
          std::log(sum) - scores[static_cast<std::size_t>(labels.data<const std::int64_t>()[n])];
    }
    return total / static_cast<double>(x.size(0));
  }
};

// Returns d loss / d value by central differences; value is restored.
double difference(const Reference& reference, float& value) {
  constexpr float step = 1.0f / 256;
  const float saved = value;
  value = saved + step;
  const double above = reference.loss();
  const double high = static_cast<double>(value);
  value = saved - step;
  const double below = reference.loss();
  const double low = static_cast<double>(value);
  value = saved;
  return (above - below) / (high - low);
}

}  // namespace

TEST_CASE_FIXTURE(NnFixture, "linear: gradients agree with differences of the loss") {
  const std::uint64_t seed = nn_seed();
  ebb::Random random(seed);
  Activation activation = Activation::tanh;
  SUBCASE("tanh") {}
  SUBCASE("relu") {
    activation = Activation::relu;
  }
  Linear first(*math, {"first", 9, 70, activation, seed});
  Linear last(*math, {"last", 70, 5, Activation::none, seed});
  const Tensor x = random_matrix(6, 9, random);
  const Tensor labels = ebb::empty({6}, ebb::DType::i64);
  for (std::int64_t i = 0; i < 6; ++i) {
    labels.data<std::int64_t>()[i] = static_cast<std::int64_t>(random.below(5));
  }
  const Tensor hidden = first.forward(x);
  const Tensor scores = last.forward(hidden);
  const Tensor log_probs = math->matrix(6, 5);
  const Tensor loss = math->scalar();
  const Tensor d_scores = math->matrix(6, 5);
  math->log_softmax(scores, log_probs);
  math->nll(log_probs, labels, loss);
  math->nll_grad(log_probs, labels, d_scores);
  const Tensor d_hidden = last.backward(hidden, scores, d_scores);
  const Tensor d_x = first.backward(x, hidden, d_hidden);

  ebb::nn::Parameters all = first.parameters();
  for (ebb::nn::Parameter* parameter : last.parameters()) {
    all.push_back(parameter);
  }
  const Reference reference{x, labels, all, activation};
  CHECK(loss.item<double>() == doctest::Approx(reference.loss()).epsilon(1e-5));
  const auto compare = [&](const std::string& name, const Tensor& value, const Tensor& grad) {
    double worst = 0;
    double largest = 0;
    for (std::int64_t i = 0; i < value.size(0); ++i) {
      for (std::int64_t j = 0; j < value.size(1); ++j) {
        const double wanted = difference(reference, at(value, i, j));
        worst = std::max(worst, std::abs(static_cast<double>(at(grad, i, j)) - wanted));
        largest = std::max(largest, std::abs(wanted));
      }
    }
    INFO(name);
    // A relu that bends between the two points gives a difference of its own.
    CHECK(worst < (activation == Activation::relu ? 2e-2 : 2e-5));
    CHECK(largest > 1e-3);
  };
  for (const ebb::nn::Parameter* parameter : all) {
    compare(parameter->name, parameter->value, parameter->grad);
  }
  compare("x", x, d_x);
}

TEST_CASE_FIXTURE(NnFixture, "linear: values depend on seed and name, and lie within 1/sqrt(in)") {
  const Linear a(*math, {"one", 16, 300, Activation::none, 1});
  Linear same(*math, {"one", 16, 300, Activation::none, 1});
  Linear again(*math, {"one", 16, 300, Activation::none, 1});
  Linear other_name(*math, {"two", 16, 300, Activation::none, 1});
  Linear other_seed(*math, {"one", 16, 300, Activation::none, 2});
  const auto weights = [](Linear& linear) { return numbers(linear.parameters()[0]->value); };
  CHECK(weights(same) == weights(again));
  CHECK(weights(same) != weights(other_name));
  CHECK(weights(same) != weights(other_seed));
  float largest = 0;
  double sum = 0;
  for (float value : weights(same)) {
    largest = std::max(largest, std::abs(value));
    sum += static_cast<double>(value);
  }
  CHECK(largest <= 0.25f);
  CHECK(largest > 0.24f);
  CHECK(std::abs(sum / 4800) < 0.01);
  CHECK_THROWS_AS(Linear(*math, {"none", 0, 3, Activation::none, 1}), std::invalid_argument);
}

TEST_CASE_FIXTURE(NnFixture, "sgd: momentum follows the recurrence") {
  ebb::nn::Parameter parameter = ebb::nn::make_parameter(*math, "p", 2, 300, 1.0f, 3);
  const float start = at(parameter.value, 1, 299);
  ebb::nn::Sgd sgd(*math, {&parameter}, {.rate = 0.1f, .momentum = 0.5f});
  sgd.step();  // without a gradient nothing moves
  CHECK(at(parameter.value, 1, 299) == start);
  grad_of(*math, parameter).fill_(1);
  float value = start;
  float velocity = 0;
  for (int i = 0; i < 4; ++i) {
    sgd.step();
    velocity = 0.5f * velocity + 1.0f;
    value -= 0.1f * velocity;
    CHECK(at(parameter.value, 1, 299) == doctest::Approx(value).epsilon(1e-6));
  }
}

TEST_CASE_FIXTURE(NnFixture, "sgd: rates and momenta that cannot be are refused") {
  const auto make = [&](float rate, float momentum) {
    return ebb::nn::Sgd(*math, {}, {rate, momentum});
  };
  CHECK_THROWS_AS(make(0.0f, 0.0f), std::invalid_argument);
  CHECK_THROWS_AS(make(std::nanf(""), 0.0f), std::invalid_argument);
  CHECK_THROWS_AS(make(0.1f, 1.0f), std::invalid_argument);
  CHECK_THROWS_AS(make(0.1f, -0.1f), std::invalid_argument);
}

TEST_CASE(
    "linear: gradients and momentum outlive the iteration that made them, the rest does not") {
  ebb::Runtime rt(ebb::test::nn_options(2));
  const auto math = ebb::nn::make_math(rt);
  Linear layer(*math, {"layer", 32, 48, Activation::tanh, 1});
  ebb::nn::Sgd sgd(*math, layer.parameters(), {.rate = 0.1f, .momentum = 0.9f});
  ebb::Loop loop(rt, {.name = "train", .policy = ebb::Policy::fail, .warmup = 0});
  for (int i = 0; i < 3; ++i) {
    ebb::Iteration it(loop);
    {
      const Tensor x = ebb::full({8, 32}, 0.5);
      const Tensor y = layer.forward(x);
      const Tensor dy = ebb::full({8, 48}, 1.0);
      CHECK(y.storage().owner_kind() == ebb::OwnerKind::iteration);
      CHECK(layer.backward(x, y, dy).storage().owner_kind() == ebb::OwnerKind::iteration);
      sgd.step();
    }
    CHECK(it.close().stragglers == 0);  // with Policy::fail it would throw
  }
  loop.finish();
  CHECK(layer.parameters()[0]->grad.storage().owner_kind() == ebb::OwnerKind::runtime);
}
