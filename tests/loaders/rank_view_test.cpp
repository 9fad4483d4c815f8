// SPDX-License-Identifier: Apache-2.0
// Shares of ranks: together they are the batch, whatever the number of ranks.
#include "order_fixture.h"

#include <ebb/loaders/rank_view.h>
#include <ebb/runtime/random.h>

using ebb::Order;
using ebb::OrderSpec;
using ebb::RankShare;
using ebb::RankView;
using ebb::Tail;
using ebb::test::printed_seed;
using ebb::test::refusal_of;

namespace {

struct Epoch {
  std::uint64_t batch;
  std::uint64_t samples;
};

// What the ranks of a world get of batch number seq, one after the other.
std::vector<std::uint64_t> batch_of_ranks(const Order& order, const Epoch& epoch, RankView view,
                                          std::uint64_t seq) {
  std::vector<std::uint64_t> all;
  const std::uint64_t left = std::min(epoch.batch, epoch.samples - seq * epoch.batch);
  ebb::OrderScratch scratch;
  for (view.rank = 0; view.rank < view.world; ++view.rank) {
    const RankShare share = view.share(epoch.batch, left);
    CHECK(share.first == all.size());
    std::vector<std::uint64_t> own(share.count);
    order.fill(seq * epoch.batch + share.first, own, scratch);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace

TEST_CASE("ranks: together they have the batch, for every world") {
  ebb::Random random(printed_seed(), "ranks");
  for (int round = 0; round < 200; ++round) {
    const Epoch epoch{8 + random.below(40), 100 + random.below(200)};
    const auto spec = round % 2 == 0 ? OrderSpec::shuffled() : OrderSpec::windowed({.window = 20});
    const Order order(spec, {.size = epoch.samples, .seed = random.next_u64()});
    for (const Tail tail : {Tail::partial, Tail::drop, Tail::pad}) {
      const RankView alone{.tail = tail};
      for (std::uint64_t seq = 0; seq < alone.batches(epoch.batch, epoch.samples); ++seq) {
        const auto whole = batch_of_ranks(order, epoch, alone, seq);
        for (const std::uint32_t world : {2u, 3u, 4u, 8u}) {
          CAPTURE(epoch.batch);
          CAPTURE(epoch.samples);
          CAPTURE(world);
          REQUIRE(batch_of_ranks(order, epoch, {.world = world, .tail = tail}, seq) == whole);
        }
      }
    }
  }
}

TEST_CASE("ranks: shares differ by at most one sample, and padding is at the end of all") {
  for (std::uint64_t batch = 1; batch <= 40; ++batch) {
    for (std::uint32_t world = 1; world <= batch; ++world) {
      for (std::uint64_t samples = 1; samples <= batch; ++samples) {
        std::uint64_t padding = 0;
        std::uint64_t count = 0;
        for (std::uint32_t rank = 0; rank < world; ++rank) {
          const RankShare partial = RankView{rank, world, Tail::partial}.share(batch, samples);
          REQUIRE(partial.padding == 0);
          REQUIRE(partial.count - samples / world <= 1);
          const RankShare padded = RankView{rank, world, Tail::pad}.share(batch, samples);
          REQUIRE(padded.count - batch / world <= 1);
          REQUIRE((padded.padding == 0 || padded.padding == padded.count ||
                   padded.first + padded.count - padded.padding == samples));
          padding += padded.padding;
          count += padded.count;
        }
        REQUIRE(count == batch);
        REQUIRE(padding == batch - samples);
      }
    }
  }
}

TEST_CASE(
    "ranks: padding is the begin of the epoch again, even when that is shorter than a batch") {
  const Order order(ebb::OrderKind::shuffled, 10, 4, 0);
  const auto epoch = ebb::test::epoch_of(order);
  const auto tail = batch_of_ranks(order, {8, 10}, {.world = 2, .tail = Tail::pad}, 1);
  CHECK(tail == std::vector{epoch[8], epoch[9], epoch[0], epoch[1], epoch[2], epoch[3], epoch[4],
                            epoch[5]});
  CHECK(RankView{0, 2, Tail::pad}.share(8, 2) == RankShare{0, 4, 2});
  CHECK(RankView{1, 2, Tail::pad}.share(8, 2) == RankShare{4, 4, 4});
  const auto twice = batch_of_ranks(order, {24, 10}, {.world = 3, .tail = Tail::pad}, 0);
  CHECK(twice.size() == 24);
  CHECK(std::equal(epoch.begin(), epoch.end(), twice.begin() + 10));
}

TEST_CASE("ranks: an epoch has as many batches as its tail says") {
  CHECK(RankView{.tail = Tail::partial}.batches(8, 17) == 3);
  CHECK(RankView{.tail = Tail::pad}.batches(8, 17) == 3);
  CHECK(RankView{.tail = Tail::drop}.batches(8, 17) == 2);
  CHECK(RankView{.tail = Tail::drop}.batches(8, 7) == 0);
  CHECK(RankView{.tail = Tail::partial}.batches(8, 16) == 2);
}

TEST_CASE("ranks: a view in which a rank gets nothing is refused") {
  const auto refused = [](RankView view, std::uint64_t batch, std::uint64_t samples) {
    return refusal_of([&] { view.require_shares("Loader", batch, samples); });
  };
  CHECK(refused({.rank = 2, .world = 2}, 8, 100).starts_with("[Loader] rank is 2 of a world of 2"));
  CHECK(refused({.rank = 0, .world = 0}, 8, 100).starts_with("[Loader] rank is 0 of a world of 0"));
  CHECK(refused({.world = 9}, 8, 100).starts_with("[Loader] batch is 8 for 9 ranks"));
  CHECK(refused({.world = 4}, 8, 98).find("the last batch of an epoch has 2 samples for 4 ranks") !=
        std::string::npos);
  CHECK(refused({.world = 4, .tail = Tail::drop}, 8, 98) == "accepted");
  CHECK(refused({.world = 4, .tail = Tail::pad}, 8, 98) == "accepted");
  CHECK(refused({.world = 4}, 8, 100) == "accepted");
  CHECK(refused({.world = 4}, 8, 96) == "accepted");
}
