// SPDX-License-Identifier: Apache-2.0
// Draws with replacement, by weight. A part of Order. Values: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ebb::inline v0::detail {

// Says in constant time which sample a draw is (Walker's alias method): a draw takes one of as many
// equal columns as there are samples, and each column belongs to at most two of them. Made of whole
// numbers, so that it is the same on every machine. 8 bytes a sample; const once made.
class WeightTable {
 public:
  // Throws std::invalid_argument, naming the weight, when one is negative or no number, when none
  // is more than 0, or for more than 2^31 of them.
  explicit WeightTable(std::span<const double> weights);

  std::uint64_t size() const noexcept { return columns_.size(); }
  std::uint64_t hash() const noexcept { return hash_; }  // of all weights
  std::uint64_t draw(std::uint64_t key, std::uint64_t position) const noexcept;

 private:
  struct Column {
    std::uint32_t keep;   // of 2^32 draws so many are the column's own sample
    std::uint32_t other;  // and the rest are this one
  };

  void settle(std::vector<std::uint64_t>& shares) noexcept;

  std::vector<Column> columns_;
  std::uint64_t hash_;
};

class WeightedOrder {
 public:
  WeightedOrder(std::shared_ptr<const WeightTable> table, std::uint64_t key) noexcept
      : table_(std::move(table)), key_(key) {}

  void fill(std::uint64_t first, std::span<std::uint64_t> indices) const noexcept {
    for (std::uint64_t& index : indices) {
      index = table_->draw(key_, first++);
    }
  }

 private:
  std::shared_ptr<const WeightTable> table_;
  std::uint64_t key_;
};

}  // namespace ebb::inline v0::detail
