// SPDX-License-Identifier: Apache-2.0
// What batch fits into a budget, told from iterations with small ones: the same program makes the
// same allocations, of sizes that grow with the batch by a fixed amount each. Nothing is run. Used
// by whoever looks for a batch size. Pure functions: any thread, no state; they allocate, and plan,
// which may take long. [alloc.replay]
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/sequence.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ebb::inline v0 {

// An iteration with a batch of that size, as PlanSet::sequences() has it.
struct BatchSample {
  std::size_t batch = 0;
  AllocationSequence sequence;
};

struct BatchFitOptions {
  std::size_t most = std::size_t{1} << 20;  // look no further
  std::size_t multiple_of = 1;              // only such batches
  std::uint64_t nodes = 300'000;            // of each exact search, see PlanOptions
};

// What a batch needs: height + outside.
struct BatchFit {
  std::size_t batch = 0;
  Bytes height;        // of its plan
  Bytes outside;       // what plans leave out: blocks that outlive their iteration, or are aligned
                       // to more than 64 bytes. They count as alive all the time
  bool exact = false;  // the height is proven least
  // The best found for the next larger batch: more than the budget. None where `most`, or what a
  // number of bytes can hold, ended the search.
  std::optional<Bytes> needed_by_next;
};

// Returns the sequence for a batch, from samples with two or more different ones. A block lives as
// long as in the sample where it lives longest. Throws std::invalid_argument, which names the entry
// and its place, where samples differ in more than sizes and lifetimes, where a size does not grow
// by a fixed number of bytes (0 is one) with each element of the batch, and where the size for this
// batch would be negative or reach 2^63.
AllocationSequence scale_sequence(std::span<const BatchSample> samples, std::size_t batch);

// Returns the largest batch whose plan and blocks outside it fit into the budget, in so far as
// plans can be found: the next larger one was planned, and does not fit. Throws
// std::invalid_argument as scale_sequence does, for options.multiple_of of 0 or more than
// options.most, and where nothing fits.
BatchFit largest_batch(std::span<const BatchSample> samples, Bytes budget,
                       const BatchFitOptions& options = {});

}  // namespace ebb::inline v0
