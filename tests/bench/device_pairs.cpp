// SPDX-License-Identifier: Apache-2.0
#include "device_pairs.h"

#include "bench_device.h"
#include "holes.h"
#include "planned.h"

#include <utility>

namespace ebb::bench {

Figures measure_pairs(const Effort& effort) {
  BenchDevice device;
  const ebb::StreamScope on(device.runtime(), device.stream());
  Figures figures;
  for (const std::size_t bytes : pair_sizes) {
    const int count = effort.calls(100'000);
    figures["pair_ns/planned/" + size_name(bytes)] =
        planned_ns(device.runtime(), ebb::Bytes{bytes}, count);
    figures["pair_ns/unplanned/" + size_name(bytes)] =
        unplanned_ns(device.runtime(), ebb::Bytes{bytes}, count);
  }
  return figures;
}

Figures measure_device_holes(const Effort& effort) {
  Figures figures;
  for (const auto& [figure, request] :
       {std::pair("holes_ns", ebb::Bytes{1024}), std::pair("holes_filled_ns", ebb::Bytes{0})}) {
    BenchDevice device;
    ebb::Pool pool = device.make_pool();
    ebb::Heap& heap = pool.acquire();
    figures[figure] = among_holes_ns({heap, device.stream()}, request, effort);
    ebb::Pool::park(heap);
  }
  return figures;
}

}  // namespace ebb::bench
