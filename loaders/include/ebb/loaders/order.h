// SPDX-License-Identifier: Apache-2.0
// The order of an epoch's samples as a function of (seed, epoch): computed per position, so there
// is no epoch to build, to store or to replay. Used by Loader. Values: any thread.
#pragma once

#include <ebb/loaders/order_spec.h>
#include <ebb/loaders/permutation.h>

#include <cstdint>
#include <span>
#include <variant>

namespace ebb::inline v0 {

// What an order is the order of.
struct OrderOf {
  std::uint64_t size = 0;   // samples of the data set, at most 2^40
  std::uint64_t batch = 1;  // samples; only bucketed orders depend on it
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
};

// The order of one epoch: which sample is at which position. Its size in memory does not depend on
// the data set's, but for the table of a weighted order and the lengths of a bucketed one, which
// copies share.
class Order {
 public:
  // Throws std::invalid_argument when size is more than 2^40, when weights or lengths are not as
  // many as samples, and when the windows of a bucketed order have 2^24 samples or more.
  Order(const OrderSpec& spec, const OrderOf& of);
  // Of the kinds that have no parameters: sequential and shuffled. Throws likewise.
  Order(OrderKind kind, std::uint64_t size, std::uint64_t seed, std::uint64_t epoch);

  // Returns how many positions the epoch has.
  std::uint64_t size() const noexcept { return size_; }
  // Makes room in scratch for whatever fill needs there, so that it asks for no memory.
  void prepare(OrderScratch& scratch) const;
  // Writes the samples at first, first + 1 and so on. Positions from size() on begin the epoch
  // again: the padding of a last batch. A bucketed order computes the window of a batch when it is
  // not in scratch, and throws what its function of lengths throws; the others do neither.
  void fill(std::uint64_t first, std::span<std::uint64_t> indices, OrderScratch& scratch) const;
  // Returns the sample at a position. A bucketed order computes its whole window: use fill.
  std::uint64_t at(std::uint64_t position) const;
  // Returns where a sample is. Throws std::invalid_argument for weighted orders, in which it may be
  // at many positions or at none. A bucketed order computes its whole window.
  std::uint64_t position_of(std::uint64_t index) const;

 private:
  // Its positions are its samples.
  struct Sequential {
    void fill(std::uint64_t first, std::span<std::uint64_t> indices) const noexcept;
  };
  using Rule = std::variant<Sequential, Permutation, detail::WindowedOrder, detail::WeightedOrder,
                            detail::BucketedOrder>;

  static Rule rule_of(const OrderSpec& spec, const OrderOf& of);

  std::uint64_t size_;
  Rule rule_;
};

}  // namespace ebb::inline v0
