// SPDX-License-Identifier: Apache-2.0
// Shares of ranks. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/loaders/rank_view.h>

#include <algorithm>
#include <string>

namespace ebb::inline v0 {

RankShare RankView::share(std::uint64_t batch, std::uint64_t samples) const noexcept {
  EBB_ASSERT(rank < world && samples <= batch);
  const std::uint64_t all = tail == Tail::pad ? batch : samples;
  const std::uint64_t each = all / world;
  const std::uint64_t more = all % world;  // the first ranks have one more
  const std::uint64_t first = rank * each + std::min<std::uint64_t>(rank, more);
  const std::uint64_t count = each + (rank < more ? 1 : 0);
  const std::uint64_t own = samples > first ? std::min(samples - first, count) : 0;
  return {.first = first, .count = count, .padding = count - own};
}

std::uint64_t RankView::batches(std::uint64_t batch, std::uint64_t epoch_samples) const noexcept {
  return epoch_samples / batch + (tail != Tail::drop && epoch_samples % batch != 0 ? 1 : 0);
}

void RankView::require_shares(const char* function, std::uint64_t batch,
                              std::uint64_t epoch_samples) const {
  EBB_REQUIRE(rank < world, function, "rank is ", std::to_string(rank), " of a world of ",
              std::to_string(world), ": ranks count from 0 and are below it");
  EBB_REQUIRE(batch >= world, function, "batch is ", std::to_string(batch), " for ",
              std::to_string(world), " ranks: some would get nothing; batch is of all ranks");
  const std::uint64_t last = epoch_samples % batch;
  EBB_REQUIRE(tail != Tail::partial || last == 0 || last >= world, function,
              "the last batch of an epoch has ", std::to_string(last), " samples for ",
              std::to_string(world),
              " ranks: some would get nothing; take Tail::drop or Tail::pad, or another batch");
}

}  // namespace ebb::inline v0
