// SPDX-License-Identifier: Apache-2.0
// The network of the example: inputs, two hidden layers with tanh, classes. Used by main.cpp, on
// the thread of its loop.
#pragma once

#include <ebb/runtime/runtime.h>

#include <memory>

#include <nn/device_math.h>
#include <nn/linear.h>
#include <nn/sgd.h>

struct MlpOptions {
  std::int64_t inputs = 784;
  std::int64_t hidden = 512;
  std::int64_t classes = 10;
  std::uint64_t seed = 0;
  ebb::nn::SgdOptions sgd = {};
  ebb::Device device = ebb::cpu;
};

class Mlp {
 public:
  // Parameters belong to the runtime when it is made outside any iteration, as here, and inside one
  // too: they ask for that themselves.
  explicit Mlp(ebb::Runtime& rt, const MlpOptions& options = {})
      : options_(options),
        math_(ebb::nn::make_math(rt, options.device)),
        first_(*math_, layer("first", options.inputs, options.hidden)),
        second_(*math_, layer("second", options.hidden, options.hidden)),
        last_(*math_,
              {"last", options.hidden, options.classes, ebb::nn::Activation::none, options.seed}),
        sgd_(*math_, parameters(), options.sgd) {}

  // Learns from one batch: forward, backward, update. Returns the mean loss, a scalar.
  ebb::Tensor step(const ebb::Tensor& images, const ebb::Tensor& targets) {
    const ebb::Tensor x = rows(images);
    const ebb::Tensor labels = bring(*math_, targets);
    const ebb::Tensor h1 = first_.forward(x);
    const ebb::Tensor h2 = second_.forward(h1);
    const ebb::Tensor scores = last_.forward(h2);

    const ebb::Tensor log_probs = math_->matrix(scores.size(0), scores.size(1));
    ebb::Tensor loss = math_->scalar();
    math_->log_softmax(scores, log_probs);
    math_->nll(log_probs, labels, loss);

    const ebb::Tensor d_scores = log_probs;  // in place: nobody needs them any more
    math_->nll_grad(log_probs, labels, d_scores);
    const ebb::Tensor d_h2 = last_.backward(h2, scores, d_scores);
    const ebb::Tensor d_h1 = second_.backward(h1, h2, d_h2);
    first_.backward_first(x, h1, d_h1);
    sgd_.step();
    return loss;
  }

  // Returns how many images of a batch it puts into the right class.
  std::int64_t count_correct(const ebb::Tensor& images, const ebb::Tensor& labels) const {
    return math_->count_correct(last_.forward(second_.forward(first_.forward(rows(images)))),
                                bring(*math_, labels));
  }

  ebb::Stream stream() const { return math_->stream(); }

  ebb::nn::Parameters parameters() {
    ebb::nn::Parameters all;
    for (ebb::nn::Linear* linear : {&first_, &second_, &last_}) {
      for (ebb::nn::Parameter* parameter : linear->parameters()) {
        all.push_back(parameter);
      }
    }
    return all;
  }

 private:
  ebb::nn::LinearOptions layer(const char* name, std::int64_t in, std::int64_t out) const {
    return {name, in, out, ebb::nn::Activation::tanh, options_.seed};
  }
  ebb::Tensor rows(const ebb::Tensor& images) const {
    return bring(*math_, images.reshape({images.size(0), options_.inputs}));
  }

  MlpOptions options_;
  std::unique_ptr<ebb::nn::DeviceMath> math_;
  ebb::nn::Linear first_;
  ebb::nn::Linear second_;
  ebb::nn::Linear last_;
  ebb::nn::Sgd sgd_;
};
