// SPDX-License-Identifier: Apache-2.0
// Images and labels in the IDX format of MNIST and its kin, plain or gzipped.
#pragma once

#include <ebb/loaders/dataset.h>

#include <filesystem>
#include <string>

namespace ebb::inline v0 {

struct IdxOptions {
  float mean = 0;
  float std = 1;          // must be finite and more than 0
  std::string name = {};  // for messages; empty: the name of the images' file
};

// Reads both files into memory, where the pixels stay single bytes. A sample is "x", f32 [1, H, W]
// = (byte/255 - mean)/std, and "y", i64 scalar. Gzip is told by its first bytes, not by the name.
// Throws LoadError, with file and byte offset, for whatever is not exactly two IDX files of
// unsigned bytes with as many images as labels; std::invalid_argument for options that cannot be.
AnyDataset open_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                    const IdxOptions& options = {});

}  // namespace ebb::inline v0
