// SPDX-License-Identifier: Apache-2.0
// The command line of the trainer. Used by main.cpp before anything else; main thread only.
#pragma once

#include <ebb/runtime/runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

// The user can mend it: the message says how, and the exit code is 2.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  bool synthetic = false;
  std::uint64_t epochs = 5;
  std::int64_t batch = 64;
  unsigned workers = 1;
  unsigned threads = 0;  // as many as cores
  std::uint64_t seed = 1;
  float rate = 0.01f;
  float momentum = 0.5f;
  float mean = 0.1307f;  // of the pixels of MNIST; they serve its kin as well
  float std = 0.3081f;
  ebb::Device device = ebb::cpu;
  ebb::ExecutorKind executor = ebb::ExecutorKind::tbb;
  std::string json_path;
  std::string import_path;
  std::string export_path;
};

// Returns whether training is wanted; false when the help was asked for, and printed. Throws
// BadInput for what cannot be, before any work: outputs that cannot be written too.
bool parse_options(int argc, char** argv, Options& options);
