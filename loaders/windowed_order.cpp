// SPDX-License-Identifier: Apache-2.0
// Windowed shuffles. What is computed here is part of the format, as Permutation is. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/loaders/windowed_order.h>

#include <algorithm>

namespace ebb::inline v0::detail {

namespace {

// Names for order_key, which keep what one epoch draws apart.
enum : std::uint64_t { shift_draw = 0, page_draw = 1, block_draws = 2 };

}  // namespace

WindowedOrder::WindowedOrder(const WindowOptions& options, std::uint64_t size, std::uint64_t key)
    : size_(size),
      key_(key),
      block_((options.window + 1) / 2),
      shifts_{order_key(key, shift_draw) % block_, 0},
      page_(options.page),
      pages_(page_ == 0 ? 0 : size / page_, order_key(key, page_draw)) {
  EBB_ASSERT(block_ >= 2 && options.window < size);
  shifts_[1] = (shifts_[0] + block_ / 2) % block_;
}

WindowedOrder::Block WindowedOrder::block_at(std::size_t layer,
                                             std::uint64_t position) const noexcept {
  const std::uint64_t number = (position + block_ - shifts_[layer]) / block_;
  const std::uint64_t end = shifts_[layer] + number * block_;
  const std::uint64_t begin = end > block_ ? end - block_ : 0;
  return {begin, Permutation(std::min(end, size_) - begin,
                             order_key(key_, block_draws + 2 * number + layer))};
}

void WindowedOrder::fill(std::uint64_t first, std::span<std::uint64_t> indices) const noexcept {
  for (std::span<std::uint64_t> rest = indices; !rest.empty();) {
    const Block outer = block_at(1, first);
    const std::uint64_t end = outer.begin + outer.inside.size();
    // All that outer reaches into.
    const std::array<Block, 2> inner = {block_at(0, outer.begin), block_at(0, end - 1)};
    const auto count = static_cast<std::size_t>(std::min(end - first, std::uint64_t{rest.size()}));
    // One layer after the other: a processor has several short chains under way, one long one not.
    for (std::uint64_t& between : rest.first(count)) {
      between = outer.at(first++);
    }
    for (std::uint64_t& index : rest.first(count)) {
      index = inner[index >= inner[1].begin ? 1 : 0].at(index);
    }
    rest = rest.subspan(count);
  }
  if (page_ != 0) {
    for (std::uint64_t& index : indices) {
      const std::uint64_t page = index / page_;
      index = page < pages_.size() ? pages_.at(page) * page_ + index % page_ : index;
    }
  }
}

std::uint64_t WindowedOrder::position_of(std::uint64_t index) const noexcept {
  std::uint64_t unpaged = index;
  if (page_ != 0 && index / page_ < pages_.size()) {
    unpaged = pages_.position_of(index / page_) * page_ + index % page_;
  }
  const std::uint64_t between = block_at(0, unpaged).position_of(unpaged);
  return block_at(1, between).position_of(between);
}

}  // namespace ebb::inline v0::detail
