// SPDX-License-Identifier: Apache-2.0
// The network of examples/mlp on the device, with made-up batches in pinned memory. Used by what
// measures training steps. One thread.
#pragma once

#include "bench_device.h"

#include <ebb/runtime/random.h>

#include <cstdint>

#include <mlp/mlp.h>

namespace ebb::bench {

class DeviceMlp {
 public:
  DeviceMlp(BenchDevice& device, std::int64_t batch)
      : model_(device.runtime(), {.device = device.device()}),
        on_(device.runtime(), model_.stream()),
        host_images_(ebb::empty_pinned(device.runtime(), device.device(), {batch, 784})),
        host_labels_(
            ebb::empty_pinned(device.runtime(), device.device(), {batch}, ebb::DType::i64)),
        images_(ebb::empty(device.runtime(), {batch, 784})),
        labels_(ebb::empty(device.runtime(), {batch}, ebb::DType::i64)),
        loss_(ebb::zeros(device.runtime(), {})) {
    ebb::Random random(1, "device_mlp");
    ebb::fill_uniform(host_images_.span<float>(), -1.0f, 1.0f, random);
    for (std::int64_t& label : host_labels_.span<std::int64_t>()) {
      label = static_cast<std::int64_t>(random.below(10));
    }
  }

  // Where its weights are, and what it does is queued.
  ebb::Stream stream() const { return model_.stream(); }
  // One step on that stream, in the current iteration.
  void step() {
    images_.copy_(host_images_);
    labels_.copy_(host_labels_);
    loss_.copy_(model_.step(images_, labels_));
  }

 private:
  Mlp model_;
  const ebb::StreamScope on_;
  ebb::Tensor host_images_;
  ebb::Tensor host_labels_;
  ebb::Tensor images_;
  ebb::Tensor labels_;
  ebb::Tensor loss_;
};

}  // namespace ebb::bench
