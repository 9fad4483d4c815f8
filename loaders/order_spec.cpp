// SPDX-License-Identifier: Apache-2.0
// Kinds of orders with their parameters. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/loaders/order_spec.h>

#include <array>
#include <cstddef>
#include <utility>

namespace ebb::inline v0 {

namespace {

constexpr std::array<std::string_view, 5> names = {"sequential", "shuffled", "windowed", "weighted",
                                                   "bucketed"};

}  // namespace

std::string_view to_string(OrderKind kind) noexcept {
  return names.at(static_cast<std::size_t>(kind));
}

OrderSpec::OrderSpec(OrderKind kind, std::uint64_t hash) noexcept
    : kind_(kind), id_(hash << 8 | static_cast<std::uint64_t>(kind)) {}

OrderSpec OrderSpec::windowed(const WindowOptions& options) {
  EBB_REQUIRE(options.window >= 4, "OrderSpec::windowed", "window is ",
              std::to_string(options.window), ": at least 4 samples");
  OrderSpec spec(OrderKind::windowed, order_key(options.window, options.page));
  spec.window_options_ = options;
  return spec;
}

OrderSpec OrderSpec::weighted(std::span<const double> weights, std::uint64_t samples) {
  auto table = std::make_shared<const detail::WeightTable>(weights);
  const std::uint64_t epoch_samples = samples != 0 ? samples : table->size();
  OrderSpec spec(OrderKind::weighted, order_key(table->hash(), epoch_samples));
  spec.epoch_samples_ = epoch_samples;
  spec.weights_ = std::move(table);
  return spec;
}

OrderSpec OrderSpec::bucketed(BucketOptions options) {
  constexpr const char* where = "OrderSpec::bucketed";
  EBB_REQUIRE(options.window >= 1, where, "window is 0: at least 1 batch");
  EBB_REQUIRE(options.lengths.empty() || !options.length, where,
              "there is a table of lengths and a function, too: give one");
  std::shared_ptr<const detail::SampleLengths> lengths;
  if (options.length) {
    lengths = std::make_shared<const detail::SampleLengths>(std::move(options.length));
  } else if (!options.lengths.empty()) {
    lengths = std::make_shared<const detail::SampleLengths>(std::move(options.lengths));
  }
  OrderSpec spec(OrderKind::bucketed,
                 order_key(lengths == nullptr ? 0 : lengths->hash(), options.window));
  spec.window_batches_ = options.window;
  spec.lengths_ = std::move(lengths);
  return spec;
}

bool OrderSpec::needs_lengths() const noexcept {
  return kind_ == OrderKind::bucketed && lengths_ == nullptr;
}

OrderSpec OrderSpec::with_lengths(std::function<std::int64_t(std::uint64_t)> length) const {
  OrderSpec spec = *this;
  spec.lengths_ = std::make_shared<const detail::SampleLengths>(std::move(length));
  return spec;
}

std::string OrderSpec::describe() const {
  std::string text(to_string(kind_));
  switch (kind_) {
    case OrderKind::sequential:
    case OrderKind::shuffled:
      break;
    case OrderKind::windowed:
      text += " (window " + std::to_string(window_options_.window) + ", page " +
              std::to_string(window_options_.page) + ")";
      break;
    case OrderKind::weighted:
      text += " (" + std::to_string(weights_->size()) + " weights, " +
              std::to_string(epoch_samples_) + " samples an epoch)";
      break;
    case OrderKind::bucketed:
      text += " (windows of " + std::to_string(window_batches_) + " batches)";
      break;
  }
  return text;
}

std::string describe_order(std::uint64_t id) {
  const std::uint64_t kind = id & 0xff;
  if (kind >= names.size()) {
    return "unknown (id " + std::to_string(id) + ")";
  }
  const std::string name(names.at(static_cast<std::size_t>(kind)));
  return id == kind ? name : name + " (id " + std::to_string(id) + ")";
}

}  // namespace ebb::inline v0
