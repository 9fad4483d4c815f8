// SPDX-License-Identifier: Apache-2.0
// Bucketed orders: windows sorted by length. What is computed here is part of the format, as
// Permutation is. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/loaders/bucketed_order.h>

#include <algorithm>
#include <string>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

constexpr std::uint64_t rank_mask = (std::uint64_t{1} << BucketedOrder::rank_bits) - 1;
constexpr std::int64_t length_end = std::int64_t{1} << (64 - BucketedOrder::rank_bits);

std::uint64_t checked(std::int64_t length, const char* function, std::uint64_t index) {
  EBB_REQUIRE(length >= 0 && length < length_end, function, "sample ", std::to_string(index),
              " has the length ", std::to_string(length), ": lengths are from 0 to 2^40 - 1");
  return static_cast<std::uint64_t>(length);
}

}  // namespace

SampleLengths::SampleLengths(std::vector<std::int64_t> table) : table_(std::move(table)) {
  for (std::uint64_t index = 0; index < table_.size(); ++index) {
    hash_ = order_key(hash_, checked(table_[index], "OrderSpec::bucketed", index));
  }
}

std::uint64_t SampleLengths::of(std::uint64_t index) const {
  return is_table() ? static_cast<std::uint64_t>(table_[index])
                    : checked(function_(index), "Order::fill", index);
}

BucketedOrder::BucketedOrder(std::shared_ptr<const SampleLengths> lengths, const Shape& shape,
                             std::uint64_t key)
    : lengths_(std::move(lengths)),
      shape_(shape),
      whole_(shape.size / shape.batch * shape.batch),
      key_(key),
      identity_(order_key(order_key(key, shape.size), order_key(shape.batch, shape.window))),
      shuffled_(shape.size, key) {}

std::uint64_t BucketedOrder::window_samples() const noexcept {
  return std::min(whole_, shape_.batch * shape_.window);
}

void BucketedOrder::prepare(OrderScratch& scratch) const {
  scratch.sorted_.reserve(static_cast<std::size_t>(window_samples()));
}

void BucketedOrder::sort(std::uint64_t begin, std::uint64_t samples,
                         std::vector<std::uint64_t>& sorted) const {
  sorted.clear();
  for (std::uint64_t rank = 0; rank < samples; ++rank) {
    // Equal lengths stay in the shuffled order.
    sorted.push_back(lengths_->of(shuffled_.at(begin + rank)) << rank_bits | rank);
  }
  std::sort(sorted.begin(), sorted.end());
}

BucketedOrder::Window BucketedOrder::window_at(std::uint64_t position,
                                               OrderScratch& scratch) const {
  const std::uint64_t number = position / window_samples();
  const std::uint64_t begin = number * window_samples();
  const std::uint64_t samples = std::min(window_samples(), whole_ - begin);
  // The size tells a window that a throwing function of lengths left unfinished.
  if (scratch.order_ != identity_ || scratch.number_ != number ||
      scratch.sorted_.size() != samples) {
    scratch.order_ = identity_;
    scratch.number_ = number;
    prepare(scratch);
    sort(begin, samples, scratch.sorted_);
  }
  return {begin, scratch.sorted_, Permutation(samples / shape_.batch, order_key(key_, number))};
}

void BucketedOrder::fill(std::uint64_t first, std::span<std::uint64_t> indices,
                         OrderScratch& scratch) const {
  const std::uint64_t batch = shape_.batch;
  while (!indices.empty() && first < whole_) {
    const Window window = window_at(first, scratch);
    const std::uint64_t row = first % batch;
    const std::uint64_t bucket = window.batches.at((first - window.begin) / batch);
    const std::uint64_t count = std::min(std::uint64_t{indices.size()}, batch - row);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t rank = window.sorted[bucket * batch + row + i] & rank_mask;
      indices[i] = shuffled_.at(window.begin + rank);
    }
    indices = indices.subspan(count);
    first += count;
  }
  for (std::uint64_t& index : indices) {
    index = shuffled_.at(first++);
  }
}

std::uint64_t BucketedOrder::position_of(std::uint64_t index) const {
  const std::uint64_t batch = shape_.batch;
  const std::uint64_t position = shuffled_.position_of(index);
  if (position >= whole_) {
    return position;
  }
  OrderScratch scratch;
  const Window window = window_at(position, scratch);
  std::uint64_t place = 0;
  while ((window.sorted[place] & rank_mask) != position - window.begin) {
    ++place;
  }
  return window.begin + window.batches.position_of(place / batch) * batch + place % batch;
}

}  // namespace ebb::inline v0::detail
