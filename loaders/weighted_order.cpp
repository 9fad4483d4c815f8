// SPDX-License-Identifier: Apache-2.0
// The table of weighted orders, and draws from it. What is computed here is part of the format, as
// Permutation is. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/loaders/permutation.h>
#include <ebb/loaders/weighted_order.h>
#include <ebb/runtime/random.h>

#include <bit>
#include <cmath>
#include <string>

namespace ebb::inline v0::detail {

namespace {

constexpr std::uint64_t column_share = std::uint64_t{1} << 32;
constexpr std::uint64_t max_columns = std::uint64_t{1}
                                      << 31;    // a share of all of them fits 63 bits
constexpr std::uint32_t draw_tag = 0x7767686f;  // apart from the counters of Random

double sum_of(std::span<const double> weights) {
  constexpr const char* where = "OrderSpec::weighted";
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EBB_REQUIRE(weights[i] >= 0 && std::isfinite(weights[i]), where, "weight ", std::to_string(i),
                " is ", std::to_string(weights[i]), ": weights are numbers from 0 on");
    sum += weights[i];
  }
  EBB_REQUIRE(sum > 0 && std::isfinite(sum), where, "the ", std::to_string(weights.size()),
              " weights add up to ", std::to_string(sum), ": there is no sample to draw");
  return sum;
}

// Returns the weights as whole numbers that add up to column_share for each.
std::vector<std::uint64_t> shares_of(std::span<const double> weights) {
  const double sum = sum_of(weights);
  const std::uint64_t total = column_share * weights.size();
  std::vector<std::uint64_t> shares(weights.size());
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    shares[i] = static_cast<std::uint64_t>(weights[i] / sum * static_cast<double>(total));
    given += shares[i];
  }
  // What rounding has left over is less than a share's last digit or two; it goes around.
  for (std::size_t i = 0; given != total; i = (i + 1) % shares.size()) {
    if (shares[i] != 0) {
      const bool is_short = given < total;
      shares[i] += is_short ? 1 : ~std::uint64_t{0};
      given += is_short ? 1 : ~std::uint64_t{0};
    }
  }
  return shares;
}

}  // namespace

WeightTable::WeightTable(std::span<const double> weights) : hash_(weights.size()) {
  EBB_REQUIRE(weights.size() <= max_columns, "OrderSpec::weighted", std::to_string(weights.size()),
              " weights: at most 2^31 samples can be weighted");
  std::vector<std::uint64_t> shares = shares_of(weights);
  columns_.reserve(weights.size());
  for (const double weight : weights) {
    hash_ = order_key(hash_, std::bit_cast<std::uint64_t>(weight + 0.0));  // 0 and -0 are one
    columns_.push_back({0, static_cast<std::uint32_t>(columns_.size())});
  }
  settle(shares);
}

// Each column whose sample has less than it needs is filled up by a sample that has more. Those are
// taken in order; one that has too little itself afterwards is looked at again where it lies
// behind.
void WeightTable::settle(std::vector<std::uint64_t>& shares) noexcept {
  std::size_t giver = 0;
  const auto seek_giver = [&] {
    while (giver < shares.size() && shares[giver] < column_share) {
      ++giver;
    }
  };
  seek_giver();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    std::size_t taker = i;
    while (shares[taker] < column_share) {
      EBB_ASSERT(giver < shares.size());  // since the shares add up
      columns_[taker] = {static_cast<std::uint32_t>(shares[taker]),
                         static_cast<std::uint32_t>(giver)};
      shares[giver] -= column_share - shares[taker];
      if (shares[giver] >= column_share) {
        break;
      }
      taker = giver;
      seek_giver();
      if (taker > i) {
        break;
      }
    }
  }
}

std::uint64_t WeightTable::draw(std::uint64_t key, std::uint64_t position) const noexcept {
  __extension__ using Wide = unsigned __int128;
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto words =
      philox4x32({low(position), low(position >> 32), draw_tag, 0}, {low(key), low(key >> 32)});
  const std::uint64_t wide = words[0] | (std::uint64_t{words[1]} << 32);
  const auto number = static_cast<std::size_t>((Wide{wide} * columns_.size()) >> 64);
  const Column& column = columns_[number];
  return words[2] < column.keep ? number : column.other;
}

}  // namespace ebb::inline v0::detail
