// SPDX-License-Identifier: Apache-2.0
// Best fit among many holes. Nothing is written into the blocks, so their pages cost nothing.
#include "holes.h"

#include <ebb/alloc/pool.h>

#include <algorithm>
#include <random>
#include <stdexcept>

namespace ebb::bench {
namespace {

using Blocks = std::vector<ebb::Block>;

constexpr std::size_t granule = 64;
constexpr std::size_t smallest = 4096 + granule;  // above the slab limit
constexpr std::size_t largest = 48 << 10;
constexpr std::size_t window = 64;  // blocks of the requests that are alive together
constexpr std::uint64_t seed = 1;

void free_all(ebb::Heap& heap, const Blocks& blocks) {
  for (const ebb::Block& block : blocks) {
    heap.deallocate(block);
  }
}

// Leaves count holes between walls that stay alive. Returns the sizes of the holes, sorted.
std::vector<std::size_t> make_holes(ebb::Heap& heap, std::size_t count, std::mt19937_64& random,
                                    Blocks& walls) {
  std::uniform_int_distribution<std::size_t> granules(smallest / granule, largest / granule);
  std::vector<std::size_t> sizes(count);
  Blocks holes(count);
  for (std::size_t i = 0; i < count; ++i) {
    sizes[i] = granules(random) * granule;
    holes[i] = heap.allocate(ebb::Bytes{sizes[i]});
    walls.push_back(heap.allocate(ebb::Bytes{smallest}));
  }
  std::shuffle(holes.begin(), holes.end(), random);
  free_all(heap, holes);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

// Sizes larger than nine tenths of the holes, that even so find one.
std::vector<ebb::Bytes> make_requests(const std::vector<std::size_t>& holes, std::size_t count,
                                      std::mt19937_64& random) {
  const std::size_t first = holes.size() * 9 / 10 + 1;
  std::uniform_int_distribution<std::size_t> pick(first, holes.size() - 1 - 2 * window);
  std::vector<ebb::Bytes> requests(count);
  for (ebb::Bytes& request : requests) {
    request = ebb::Bytes{std::max(holes[pick(random)], holes[first - 1] + 1)};
  }
  return requests;
}

// The oldest block of the window goes, and a new one comes.
double microseconds_per_pair(ebb::Heap& heap, const std::vector<ebb::Bytes>& requests) {
  Blocks alive(window);
  for (std::size_t i = 0; i < window; ++i) {
    alive[i] = heap.allocate(requests[i]);
  }
  const double ns = nanoseconds_per_call(static_cast<int>(requests.size()), [&](int call) {
    const auto i = static_cast<std::size_t>(call);
    ebb::Block& oldest = alive[i % window];
    heap.deallocate(oldest);
    oldest = heap.allocate(requests[i]);
  });
  free_all(heap, alive);
  return ns / 1000;
}

}  // namespace

Figures measure_holes(const Effort& effort) {
  ebb::Pool pool(ebb::system_source(), ebb::PoolOptions{.name = "holes"});
  ebb::Heap& heap = pool.acquire();
  std::mt19937_64 random(seed);
  Blocks walls;
  const std::size_t count = effort.quick ? 4096 : 65536;
  const std::vector<std::size_t> holes = make_holes(heap, count, random, walls);
  const ebb::Bytes reserved = heap.stats().reserved;
  const double us = microseconds_per_pair(
      heap, make_requests(holes, static_cast<std::size_t>(effort.calls(200'000)), random));
  if (heap.stats().reserved != reserved) {
    throw std::logic_error("[measure_holes] the heap grew instead of filling a hole");
  }
  free_all(heap, walls);
  ebb::Pool::park(heap);
  return {{"holes_us", us}};
}

}  // namespace ebb::bench
