// SPDX-License-Identifier: Apache-2.0
// Damaging files at random: whatever is done to a valid one, a reader takes it or refuses it by
// LoadError. EBB_TEST_SEED repeats a run; it takes 10 s at most, a minute with EBB_LONG.
#pragma once

#include "support/test_settings.h"

#include <ebb/loaders/error.h>
#include <ebb/runtime/random.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace ebb::test {

// Cuts, lengthens, repeats, moves, overwrites or flips parts of bytes, most often near the begin.
inline std::string damaged(std::string bytes, Random& random) {
  for (std::uint64_t times = 1 + random.below(3); times > 0 && !bytes.empty(); --times) {
    const std::uint64_t at = random.below(
        random.below(2) == 0 ? bytes.size() : std::min<std::uint64_t>(bytes.size(), 128));
    const std::uint64_t length = 1 + random.below(std::min<std::uint64_t>(bytes.size() - at, 16));
    switch (random.below(7)) {
      case 0:
        bytes.resize(random.below(bytes.size() + 1));
        break;
      case 1:
        bytes += static_cast<char>(random.below(256));
        break;
      case 2:
        bytes[at] = static_cast<char>(random.below(256));
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(random.below(bytes.size() + 1), bytes.substr(at, length));
        break;
      case 5:  // sizes that no file has
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length,
                    random.below(2) == 0 ? '\xff' : '\0');
        break;
      default:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
    }
  }
  return bytes;
}

// Calls open(bytes) for damaged copies of the valid files, each of which it must take. Only
// LoadError and std::invalid_argument may come out of it.
template <class Open>
void fuzz(const char* name, const std::vector<std::string>& valid, Open open) {
  const std::uint64_t seed = test_seed();
  const std::uint64_t rounds = std::max<std::uint64_t>(stress(8000) / 4, 100);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here sets the environment
  const bool is_long = std::getenv("EBB_LONG") != nullptr;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(is_long ? 60 : 10);
  MESSAGE(std::string(name) << ": EBB_TEST_SEED=" << seed);
  for (const std::string& bytes : valid) {
    open(bytes);
  }
  Random random(seed, name);
  std::uint64_t refused = 0;
  std::uint64_t round = 0;
  for (; round < rounds && std::chrono::steady_clock::now() < end; ++round) {
    const std::string bytes = damaged(valid[random.below(valid.size())], random);
    try {
      open(bytes);
    } catch (const LoadError& error) {
      ++refused;
      CAPTURE(std::string(error.what()));
      REQUIRE_FALSE(error.info().source.empty());
      REQUIRE_FALSE(error.info().stage.empty());
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  MESSAGE(std::string(name) << ": " << refused << " of " << round << " refused");
  CHECK(refused > round / 10);
}

}  // namespace ebb::test
