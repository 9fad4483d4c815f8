// SPDX-License-Identifier: Apache-2.0
// Batches of samples of about the same length. A part of Order. Values: any thread; an OrderScratch
// is of one thread at a time.
#pragma once

#include <ebb/loaders/permutation.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

namespace detail {
class BucketedOrder;
}

// How batches of about equally long samples are made: every window of so many batches of the
// shuffled order is sorted by length and cut into batches, each ascending, which are shuffled; the
// first of several ranks has the shortest of a batch. Each thread that fills computes the windows
// that it has batches of: some 100 ns a sample, where a shuffled order takes 12. Of lognormal
// lengths (sigma 0.8, batches of 32) 12 % of what a batch holds is padding then, where a full
// shuffle has 76 %. Where neither lengths nor length is given, a loader asks its data set.
struct BucketOptions {
  std::uint64_t window = 64;               // batches; together less than 2^24 samples
  std::vector<std::int64_t> lengths = {};  // one for each sample
  // The same for data sets that are too large for a table. Called from several threads; belongs to
  // the data set as its fingerprint does.
  std::function<std::int64_t(std::uint64_t index)> length = {};
};

// What filling by a bucketed order keeps between calls: the window that the next batch is probably
// of, too. Serves the orders of one OrderSpec; other kinds need none of it.
class OrderScratch {
 private:
  friend class detail::BucketedOrder;

  std::uint64_t order_ = 0;   // whose window this is
  std::uint64_t number_ = 0;  // of the window
  std::vector<std::uint64_t> sorted_;
};

namespace detail {

// How long each sample is: a table or a function.
class SampleLengths {
 public:
  using Function = std::function<std::int64_t(std::uint64_t index)>;

  // Throws std::invalid_argument, naming the sample, when a length is negative or not below 2^40.
  explicit SampleLengths(std::vector<std::int64_t> table);
  explicit SampleLengths(Function function) noexcept : function_(std::move(function)) {}

  bool is_table() const noexcept { return !function_; }
  std::uint64_t size() const noexcept { return table_.size(); }  // of a table
  std::uint64_t hash() const noexcept { return hash_; }          // of a table
  // Throws what the function throws, and as the constructor does.
  std::uint64_t of(std::uint64_t index) const;

 private:
  std::vector<std::int64_t> table_;
  Function function_;
  std::uint64_t hash_ = 0;
};

// The shuffled order, of which every window of some batches is sorted by length, cut into batches,
// and the batches shuffled. What is left after the last whole batch stays as it is, so that it is
// no batch of the longest samples. A window is computed when a fill first comes to it.
class BucketedOrder {
 public:
  static constexpr unsigned rank_bits = 24;  // of a sample in its window

  struct Shape {
    std::uint64_t size;    // samples of the data set
    std::uint64_t batch;   // samples
    std::uint64_t window;  // batches; together less than 2^rank_bits samples
  };

  BucketedOrder(std::shared_ptr<const SampleLengths> lengths, const Shape& shape,
                std::uint64_t key);

  void prepare(OrderScratch& scratch) const;
  void fill(std::uint64_t first, std::span<std::uint64_t> indices, OrderScratch& scratch) const;
  std::uint64_t position_of(std::uint64_t index) const;

 private:
  struct Window {
    std::uint64_t begin;                    // the position of its first sample
    std::span<const std::uint64_t> sorted;  // length and rank of each sample
    Permutation batches;                    // which of the sorted ones comes when
  };
  std::uint64_t window_samples() const noexcept;  // at most
  // Valid until the scratch is used again.
  Window window_at(std::uint64_t position, OrderScratch& scratch) const;
  void sort(std::uint64_t begin, std::uint64_t samples, std::vector<std::uint64_t>& sorted) const;

  std::shared_ptr<const SampleLengths> lengths_;
  Shape shape_;
  std::uint64_t whole_;  // samples that are in whole batches
  std::uint64_t key_;
  std::uint64_t identity_;
  Permutation shuffled_;
};

}  // namespace detail

}  // namespace ebb::inline v0
