// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 and CIFAR-100 in their binary version, plain or gzipped, as their authors describe it:
// https://www.cs.toronto.edu/~kriz/cifar.html. In libebb-formats.
#pragma once

#include <ebb/loaders/dataset.h>
#include <ebb/loaders/file_paths.h>

#include <array>
#include <cstdint>
#include <string>

namespace ebb::inline v0 {

struct CifarOptions {
  int classes = 10;                       // 10 or 100: which of the two sets
  bool coarse = false;                    // of CIFAR-100: y is one of the 20 superclasses
  bool train = true;                      // of a folder: the training images; else the test images
  std::array<float, 3> mean = {0, 0, 0};  // of red, green and blue
  std::array<float, 3> std = {1, 1, 1};   // each finite and more than 0
  std::string name = {};                  // for messages; empty: the first file's name
};

// Reads the files one after the other into memory, where pixels stay single bytes. A folder stands
// for the files that the archive has in it: data_batch_1.bin to data_batch_5.bin or test_batch.bin,
// train.bin or test.bin of CIFAR-100, each perhaps with ".gz". A sample is "x", f32 [3, 32, 32] =
// (byte/255 - mean)/std by colour, and "y", i64 scalar: the class, the fine one of CIFAR-100. Gzip
// is told by its first bytes, not by the name. The fingerprint is of contents and options, not of
// names.
//
// Throws LoadError, with file and byte offset, for a file that is empty or not whole, and for a
// label that is no class; std::invalid_argument for options that cannot be.
AnyDataset open_cifar(const FilePaths& files, const CifarOptions& options = {});

}  // namespace ebb::inline v0
