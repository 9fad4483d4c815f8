// SPDX-License-Identifier: Apache-2.0
// What the code in README.md takes for granted. Used by run.sh only; nothing here is linked.
#pragma once

#include <ebb/ebb.h>

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
void train_step(ebb::Iteration& it, std::size_t batch);
void print(const ebb::Place& place, std::uint64_t followed, ebb::Bytes height);
