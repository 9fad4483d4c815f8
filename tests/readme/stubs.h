// SPDX-License-Identifier: Apache-2.0
// What the code in README.md, docs/data.md and docs/devices.md takes for granted. Used by run.sh
// only; nothing here is linked.
#pragma once

#include <ebb/alloc/sim.h>
#include <ebb/ebb.h>
#include <ebb/loaders/cifar.h>
#include <ebb/loaders/combine.h>
#include <ebb/loaders/csv.h>
#include <ebb/loaders/image_folder.h>
#include <ebb/loaders/vocabulary.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
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
inline std::vector<std::filesystem::path> my_files;
bool compute_wave(std::uint64_t index, float phase, std::span<const float> table,
                  std::span<std::byte> work, std::span<float> out);
std::string read_file(const std::filesystem::path& path);
bool decode_picture(std::span<const std::byte> bytes, std::span<std::byte> pixels);
void crop(std::span<const std::byte> pixels, std::uint64_t x, std::uint64_t y,
          std::span<float> out);
void print(const ebb::Place& place, std::uint64_t followed, ebb::Bytes height);
