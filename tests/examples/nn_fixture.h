// SPDX-License-Identifier: Apache-2.0
// What the tests of examples/nn share: a runtime on the executor under test, random matrices, and
// plain double-precision answers to compare with. One thread.
#pragma once

#include "support/executor_choice.h"

#include <ebb/runtime/random.h>
#include <ebb/runtime/runtime.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <nn/device_math.h>
#include <nn/parameter.h>

namespace ebb::test {

inline RuntimeOptions nn_options(unsigned threads) {
  return {.threads = threads, .executor = executor_choice()};
}

// Prints the seed of a randomised test, and takes it back from EBB_TEST_SEED.
inline std::uint64_t nn_seed() {
  const char* text = std::getenv("EBB_TEST_SEED");
  const std::uint64_t seed =
      text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device{}();
  MESSAGE("EBB_TEST_SEED=", seed);
  return seed;
}

struct NnFixture {
  explicit NnFixture(const RuntimeOptions& options = nn_options(2))
      : rt(options), math(nn::make_math(rt)) {}

  Tensor random_matrix(std::int64_t rows, std::int64_t columns, Random& random) {
    Tensor m = math->matrix(rows, columns);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        at(m, i, j) = random.uniform(-1.0f, 1.0f);
      }
    }
    return m;
  }
  static float& at(const Tensor& m, std::int64_t i, std::int64_t j) {
    return m.data<float>()[i * m.stride(0) + j * m.stride(1)];
  }
  static std::vector<float> numbers(const Tensor& m) {
    const Tensor copy = m.clone();
    const auto span = copy.span<const float>();
    return {span.begin(), span.end()};
  }

  Runtime rt;
  LongLived own{rt};
  std::unique_ptr<nn::DeviceMath> math;
};

}  // namespace ebb::test
