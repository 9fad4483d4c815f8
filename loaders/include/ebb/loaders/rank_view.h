// SPDX-License-Identifier: Apache-2.0
// Which part of every batch is one process's: LoaderOptions::rank. Values: any thread.
#pragma once

#include <cstdint>

namespace ebb::inline v0 {

// What becomes of the last batch of an epoch where samples are left that make no whole one.
enum class Tail : std::uint8_t {
  partial,  // it is smaller
  drop,     // it is left out
  pad,      // it is filled up with samples from the epoch's begin, and Batch::padding tells
};

// One rank's part of a batch of all ranks.
struct RankShare {
  std::uint64_t first = 0;    // of the batch's samples, counted in the batch
  std::uint64_t count = 0;    // samples, padding included
  std::uint64_t padding = 0;  // of them, at the end: repeats that fill a last batch up

  bool operator==(const RankShare&) const = default;
};

// One process of several that train together. LoaderOptions::batch is the batch of all of them:
// each has a contiguous share, so that which samples are in a batch, and where an epoch stands,
// does not depend on how many processes there are. Shares differ by at most one sample, and are
// equal where world divides the batch; weigh a mean by Batch::size where they are not.
struct RankView {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  Tail tail = Tail::partial;

  // Returns this rank's share of a batch of which samples (at most batch) are not padding.
  RankShare share(std::uint64_t batch, std::uint64_t samples) const noexcept;
  // Returns how many batches an epoch of so many samples has.
  std::uint64_t batches(std::uint64_t batch, std::uint64_t epoch_samples) const noexcept;
  // Throws std::invalid_argument, beginning with function, when rank is not below world, or some
  // rank would get nothing of a batch.
  void require_shares(const char* function, std::uint64_t batch, std::uint64_t epoch_samples) const;
};

}  // namespace ebb::inline v0
