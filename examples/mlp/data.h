// SPDX-License-Identifier: Apache-2.0
// The images to train and to test on: IDX files or made-up ones. Used by main.cpp; main thread.
#pragma once

#include "options.h"

#include <ebb/loaders/dataset.h>

struct Data {
  ebb::AnyDataset train;
  ebb::AnyDataset test;
  std::int64_t inputs;  // numbers per image
};

inline constexpr std::int64_t classes = 10;

// Throws BadInput, which says what is missing and what to give, or ebb::LoadError for files that
// are not what they should be.
Data open_data(const Options& options);
