// SPDX-License-Identifier: Apache-2.0
// How long and with which numbers randomised tests run. Any thread.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace ebb::test {

// The seed of a randomised test: EBB_TEST_SEED, else a fresh one. Print it.
inline std::uint64_t test_seed() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here sets the environment
  const char* text = std::getenv("EBB_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device{}();
}
// EBB_STRESS, else usual.
inline std::uint64_t stress(std::uint64_t usual) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here sets the environment
  const char* text = std::getenv("EBB_STRESS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : usual;
}

}  // namespace ebb::test
