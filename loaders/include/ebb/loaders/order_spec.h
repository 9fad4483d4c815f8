// SPDX-License-Identifier: Apache-2.0
// Which order a loader takes, as a value: LoaderOptions::order. Any thread; copies share tables.
#pragma once

#include <ebb/loaders/bucketed_order.h>
#include <ebb/loaders/weighted_order.h>
#include <ebb/loaders/windowed_order.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0 {

enum class OrderKind : std::uint8_t { sequential, shuffled, windowed, weighted, bucketed };

std::string_view to_string(OrderKind kind) noexcept;

// A kind of order and its parameters. What comes of it in an epoch depends on the seed and the
// epoch, and on nothing else. [load.pure]
//
//   ebb::Loader loader(rt, data, {.batch = 64, .order = ebb::OrderSpec::windowed({.page = 128})});
class OrderSpec {
 public:
  // The data set's own order in every epoch.
  static OrderSpec sequential() noexcept { return {OrderKind::sequential, 0}; }
  // Every order of the data set is as likely, another one every epoch.
  static OrderSpec shuffled() noexcept { return {OrderKind::shuffled, 0}; }
  // For files that are slow to read at random. Throws std::invalid_argument for windows below 4.
  static OrderSpec windowed(const WindowOptions& options);
  // Each sample of an epoch is drawn with replacement. weights has one for each sample of the data
  // set, from 0 on and of any sum; less than 2^-32 of their mean is as good as 0. samples: of an
  // epoch; 0: as many as there are weights. Throws std::invalid_argument, naming the weight. A
  // sample that is drawn twice in an epoch gets the same random numbers both times: rather have
  // many short epochs than a long one.
  // To mix data sets by rates, join them, and give each sample the rate of its own one over that
  // one's size.
  static OrderSpec weighted(std::span<const double> weights, std::uint64_t samples = 0);
  // Batches of about equally long samples, which need little padding. Throws std::invalid_argument
  // for lengths below 0, naming the sample, and for two kinds of lengths at once.
  static OrderSpec bucketed(BucketOptions options);

  OrderKind kind() const noexcept { return kind_; }
  // Returns a number for kind and parameters, which stays the same in every version: what a saved
  // state keeps. Its last byte is the kind; sequential is 0, shuffled is 1.
  std::uint64_t id() const noexcept { return id_; }
  // Returns how many samples an epoch has.
  std::uint64_t samples(std::uint64_t dataset_size) const noexcept {
    return epoch_samples_ != 0 ? epoch_samples_ : dataset_size;
  }
  // Whether this is a bucketed order that has no lengths yet, and the same with lengths.
  bool needs_lengths() const noexcept;
  OrderSpec with_lengths(std::function<std::int64_t(std::uint64_t index)> length) const;
  // Returns the kind with its parameters, for messages.
  std::string describe() const;

 private:
  friend class Order;
  OrderSpec(OrderKind kind, std::uint64_t hash) noexcept;

  OrderKind kind_;
  std::uint64_t id_;
  WindowOptions window_options_{};
  std::uint64_t epoch_samples_ = 0;   // weighted
  std::uint64_t window_batches_ = 0;  // bucketed
  std::shared_ptr<const detail::WeightTable> weights_;
  std::shared_ptr<const detail::SampleLengths> lengths_;  // bucketed
};

// Returns the name of the order whose id was saved, as far as the id tells.
std::string describe_order(std::uint64_t id);

}  // namespace ebb::inline v0
