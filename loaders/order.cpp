// SPDX-License-Identifier: Apache-2.0
// Orders of every kind behind one type. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/loaders/order.h>

#include <algorithm>
#include <string>
#include <type_traits>

namespace ebb::inline v0 {

namespace {

constexpr std::uint64_t max_size = std::uint64_t{1} << 40;

OrderSpec plain(OrderKind kind) {
  EBB_REQUIRE(kind == OrderKind::sequential || kind == OrderKind::shuffled, "Order", "a ",
              std::string(to_string(kind)), " order needs its OrderSpec");
  return kind == OrderKind::sequential ? OrderSpec::sequential() : OrderSpec::shuffled();
}

void require_as_many(const char* what, std::uint64_t count, std::uint64_t size) {
  EBB_REQUIRE(count == size, "Order", "there are ", std::to_string(count), " ", what, " for the ",
              std::to_string(size), " samples of the data set");
}

}  // namespace

Order::Order(const OrderSpec& spec, const OrderOf& of)
    : size_(spec.samples(of.size)), rule_(rule_of(spec, of)) {}

Order::Order(OrderKind kind, std::uint64_t size, std::uint64_t seed, std::uint64_t epoch)
    : Order(plain(kind), {.size = size, .seed = seed, .epoch = epoch}) {}

Order::Rule Order::rule_of(const OrderSpec& spec, const OrderOf& of) {
  EBB_REQUIRE(of.size <= max_size && spec.samples(of.size) <= max_size, "Order", "an epoch of ",
              std::to_string(spec.samples(of.size)), " of ", std::to_string(of.size),
              " samples: at most 2^40 have an order");
  const std::uint64_t key = order_key(of.seed, of.epoch);
  switch (spec.kind()) {
    case OrderKind::sequential:
      break;
    case OrderKind::shuffled:
      return Permutation(of.size, key);
    case OrderKind::windowed:
      if (spec.window_options_.window >= of.size) {
        return Permutation(of.size, key);
      }
      return detail::WindowedOrder(spec.window_options_, of.size, key);
    case OrderKind::weighted:
      require_as_many("weights", spec.weights_->size(), of.size);
      return detail::WeightedOrder(spec.weights_, key);
    case OrderKind::bucketed: {
      constexpr std::uint64_t most = std::uint64_t{1} << detail::BucketedOrder::rank_bits;
      EBB_REQUIRE(!spec.needs_lengths(), "Order",
                  "a bucketed order has no lengths of its own: only "
                  "a loader asks its data set for them");
      if (spec.lengths_->is_table()) {
        require_as_many("lengths", spec.lengths_->size(), of.size);
      }
      EBB_REQUIRE(of.batch >= 1 && spec.window_batches_ < most / of.batch, "Order", "windows of ",
                  std::to_string(spec.window_batches_), " batches of ", std::to_string(of.batch),
                  ": at most 2^24 samples are sorted by length at once");
      return detail::BucketedOrder(
          spec.lengths_, {.size = of.size, .batch = of.batch, .window = spec.window_batches_}, key);
    }
  }
  return Sequential{};
}

void Order::Sequential::fill(std::uint64_t first, std::span<std::uint64_t> indices) const noexcept {
  for (std::uint64_t& index : indices) {
    index = first++;
  }
}

void Order::prepare(OrderScratch& scratch) const {
  if (const auto* const bucketed = std::get_if<detail::BucketedOrder>(&rule_)) {
    bucketed->prepare(scratch);
  }
}

void Order::fill(std::uint64_t first, std::span<std::uint64_t> indices,
                 OrderScratch& scratch) const {
  EBB_ASSERT(size_ > 0 || indices.empty());
  while (!indices.empty()) {
    const std::uint64_t from = first % size_;
    const auto count =
        static_cast<std::size_t>(std::min(std::uint64_t{indices.size()}, size_ - from));
    std::visit(
        [&](const auto& rule) {
          using Type = std::decay_t<decltype(rule)>;
          if constexpr (std::is_same_v<Type, Permutation>) {
            for (std::size_t i = 0; i < count; ++i) {
              indices[i] = rule.at(from + i);
            }
          } else if constexpr (std::is_same_v<Type, detail::BucketedOrder>) {
            rule.fill(from, indices.first(count), scratch);
          } else {
            rule.fill(from, indices.first(count));
          }
        },
        rule_);
    indices = indices.subspan(count);
    first += count;
  }
}

std::uint64_t Order::at(std::uint64_t position) const {
  EBB_ASSERT(position < size_);
  std::uint64_t index = 0;
  OrderScratch scratch;
  fill(position, {&index, 1}, scratch);
  return index;
}

std::uint64_t Order::position_of(std::uint64_t index) const {
  EBB_ASSERT(std::holds_alternative<detail::WeightedOrder>(rule_) || index < size_);
  return std::visit(
      [index](const auto& rule) -> std::uint64_t {
        using Type = std::decay_t<decltype(rule)>;
        if constexpr (std::is_same_v<Type, Sequential>) {
          return index;
        } else if constexpr (std::is_same_v<Type, detail::WeightedOrder>) {
          detail::require_failed("Order::position_of", "a weighted order has no inverse");
        } else {
          return rule.position_of(index);
        }
      },
      rule_);
}

}  // namespace ebb::inline v0
