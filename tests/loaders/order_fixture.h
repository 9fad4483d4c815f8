// SPDX-License-Identifier: Apache-2.0
// What the tests of orders share. One thread.
#pragma once

#include "support/test_settings.h"

#include <ebb/loaders/order.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ebb::test {

inline std::uint64_t printed_seed() {
  const std::uint64_t seed = test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  return seed;
}

// The samples at [first, first + count), filled as a loader does: a batch at a time.
inline std::vector<std::uint64_t> samples_at(const Order& order, std::uint64_t first,
                                             std::size_t count, std::size_t batch = 64) {
  std::vector<std::uint64_t> samples(count);
  const std::span<std::uint64_t> all(samples);
  OrderScratch scratch;
  for (std::size_t i = 0; i < count; i += batch) {
    order.fill(first + i, all.subspan(i, std::min(batch, count - i)), scratch);
  }
  return samples;
}

inline std::vector<std::uint64_t> epoch_of(const Order& order, std::size_t batch = 64) {
  return samples_at(order, 0, static_cast<std::size_t>(order.size()), batch);
}

// Whether the order has each sample once, position_of is its inverse, and a whole fill, fills by
// the batch and at agree.
inline bool is_permutation(const Order& order, std::size_t batch) {
  const std::vector<std::uint64_t> samples = epoch_of(order, batch);
  std::vector<bool> seen(samples.size());
  for (std::size_t position = 0; position < samples.size(); ++position) {
    const std::uint64_t sample = samples[position];
    if (sample >= seen.size() || seen[sample] || order.position_of(sample) != position ||
        order.at(position) != sample) {
      return false;
    }
    seen[sample] = true;
  }
  return epoch_of(order, samples.size()) == samples;
}

// The message that call is refused with.
template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace ebb::test
