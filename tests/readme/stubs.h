// SPDX-License-Identifier: Apache-2.0
// What the code in README.md and docs/devices.md takes for granted. Used by run.sh only; nothing here
// is linked.
#pragma once

#include <ebb/alloc/sim.h>
#include <ebb/ebb.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

inline std::vector<int> my_batches;

ebb::Tensor column_mean(const ebb::Tensor& x);
extern ebb::Tensor best;

inline ebb::Runtime rt;
inline std::vector<ebb::Tensor> host_batches;
void kernels(void* cuda_stream);
struct HostBatch {
  ebb::Tensor images, labels;
};
inline std::vector<HostBatch> batches;
struct Model {
  void step(const ebb::Tensor& images, const ebb::Tensor& labels, const ebb::Tensor& loss);
};
inline Model model;
void train_step(ebb::Iteration& it, std::size_t batch);
void print(const ebb::Place& place, std::uint64_t followed, ebb::Bytes height);
