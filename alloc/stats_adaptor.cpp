// SPDX-License-Identifier: Apache-2.0
// Every open section counts every event, so that ending one needs no arithmetic. Any thread.
#include "layer.h"

#include <ebb/alloc/stats_adaptor.h>

#include <algorithm>

namespace ebb::inline v0 {

namespace {

void add(StatsFigure& figure, std::uint64_t n) noexcept {
  figure.current += static_cast<std::int64_t>(n);
  figure.peak = std::max(figure.peak, figure.current);
  figure.total += n;
}

void subtract(StatsFigure& figure, std::uint64_t n) noexcept {
  figure.current -= static_cast<std::int64_t>(n);
}

}  // namespace

template <class Change>
void Stats::change_all(Change change) noexcept {
  const std::lock_guard lock(mutex_);
  for (std::size_t level = 0; level <= depth_; ++level) {
    change(levels_[level]);
  }
}

Block Stats::try_allocate(Bytes bytes, Align align, Stream stream) noexcept {
  const Block block = upstream_.try_allocate(bytes, align, stream);
  change_all([&](StatsFigures& figures) {
    if (block) {
      add(figures.bytes, bytes.count());
      add(figures.blocks, 1);
    } else {
      ++figures.refusals;
    }
  });
  return detail::take_over(block, *this);
}

void Stats::deallocate(const Block& block) noexcept {
  EBB_ASSERT(detail::is_from(block, *this));  // else freed twice, or another's
  const std::size_t bytes = block.bytes.count();
  // Before: the same bytes handed out again by another thread must not count twice in a peak.
  change_all([&](StatsFigures& figures) {
    subtract(figures.bytes, bytes);
    subtract(figures.blocks, 1);
  });
  detail::hand_down(block, upstream_);
}

OutOfMemoryInfo Stats::explain(Bytes asked) const {
  return detail::explain_through(*this, upstream_, asked);
}

StatsFigures Stats::figures() const noexcept {
  const std::lock_guard lock(mutex_);
  return levels_[0];
}

void Stats::push() {
  const std::lock_guard lock(mutex_);
  EBB_REQUIRE(depth_ < depth_max, "Stats::push", "too many sections are open");
  levels_[++depth_] = {};
}

StatsFigures Stats::pop() {
  const std::lock_guard lock(mutex_);
  EBB_REQUIRE(depth_ > 0, "Stats::pop", "no section is open");
  return levels_[depth_--];
}

}  // namespace ebb::inline v0
