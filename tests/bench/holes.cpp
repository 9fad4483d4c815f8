// SPDX-License-Identifier: Apache-2.0
// Best fit among many holes. Nothing is written into the blocks, so the CPU's pages cost nothing.
#include "holes.h"

#include <ebb/alloc/pool.h>

#include <algorithm>
#include <random>
#include <stdexcept>

namespace ebb::bench {
namespace {

using Blocks = std::vector<ebb::Block>;

constexpr std::size_t smallest = 4096 + 256;  // above the slab limit, aligned on all devices
constexpr std::size_t largest = 48 << 10;
constexpr std::size_t window = 64;  // blocks of the requests that are alive together
constexpr std::uint64_t seed = 1;

using Requests = std::vector<ebb::Bytes>;

void free_all(const HeapUse& use, const Blocks& blocks) {
  for (const ebb::Block& block : blocks) {
    use.heap.deallocate(block);
  }
}

// Leaves count holes between walls that stay alive. Returns the sizes of the holes, sorted.
std::vector<std::size_t> make_holes(const HeapUse& use, std::size_t count, std::mt19937_64& random,
                                    Blocks& walls) {
  const std::size_t granule = use.align().value();
  std::uniform_int_distribution<std::size_t> granules(smallest / granule, largest / granule);
  std::vector<std::size_t> sizes(count);
  Blocks holes(count);
  for (std::size_t i = 0; i < count; ++i) {
    sizes[i] = granules(random) * granule;
    holes[i] = use.allocate(ebb::Bytes{sizes[i]});
    walls.push_back(use.allocate(ebb::Bytes{smallest}));
  }
  std::shuffle(holes.begin(), holes.end(), random);
  free_all(use, holes);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

// Sizes larger than nine tenths of the holes, that even so find one.
Requests filling_requests(const std::vector<std::size_t>& holes, std::size_t count,
                          std::mt19937_64& random) {
  const std::size_t first = holes.size() * 9 / 10 + 1;
  std::uniform_int_distribution<std::size_t> pick(first, holes.size() - 1 - 2 * window);
  Requests requests(count);
  for (ebb::Bytes& request : requests) {
    request = ebb::Bytes{std::max(holes[pick(random)], holes[first - 1] + 1)};
  }
  return requests;
}

// The oldest block of the window goes, and a new one comes.
double nanoseconds_per_pair(const HeapUse& use, const Requests& requests) {
  Blocks alive(window);
  for (std::size_t i = 0; i < window; ++i) {
    alive[i] = use.allocate(requests[i]);
  }
  const double ns = nanoseconds_per_call(static_cast<int>(requests.size()), [&](int call) {
    const auto i = static_cast<std::size_t>(call);
    ebb::Block& oldest = alive[i % window];
    use.heap.deallocate(oldest);
    oldest = use.allocate(requests[i]);
  });
  free_all(use, alive);
  return ns;
}

}  // namespace

double among_holes_ns(const HeapUse& use, ebb::Bytes request, const Effort& effort) {
  std::mt19937_64 random(seed);
  Blocks walls;
  const auto calls = static_cast<std::size_t>(effort.calls(200'000));
  const std::vector<std::size_t> holes =
      make_holes(use, effort.quick ? 4096 : 65536, random, walls);
  const ebb::Bytes reserved = use.heap.stats().reserved;
  const double ns =
      nanoseconds_per_pair(use, request.count() == 0 ? filling_requests(holes, calls, random)
                                                     : Requests(calls, request));
  if (use.heap.stats().reserved != reserved) {
    throw std::logic_error("[among_holes_ns] the heap grew instead of filling a hole");
  }
  free_all(use, walls);
  return ns;
}

Figures measure_holes(const Effort& effort) {
  ebb::Pool pool(ebb::system_source(), ebb::PoolOptions{.name = "holes"});
  ebb::Heap& heap = pool.acquire();
  const double ns = among_holes_ns({heap}, ebb::Bytes{0}, effort);
  ebb::Pool::park(heap);
  return {{"holes_us", ns / 1000}};
}

}  // namespace ebb::bench
