// SPDX-License-Identifier: Apache-2.0
#include "planned.h"

#include "harness.h"

#include <ebb/runtime/loop.h>

#include <algorithm>
#include <stdexcept>

namespace ebb::bench {

namespace {

constexpr int storages_per_iteration = 1000;

using Clock = std::chrono::steady_clock;

double iteration_ns(ebb::Loop& loop, std::size_t bytes) {
  ebb::Iteration it(loop);
  const ebb::Owner owner = it.owner();
  const auto start = Clock::now();
  for (int i = 0; i < storages_per_iteration; ++i) {
    keep_alive(
        ebb::Storage::make(owner, ebb::Bytes{bytes}, ebb::default_align_cpu, {ebb::Place::here()})
            .data());
  }
  const std::chrono::duration<double, std::nano> took = Clock::now() - start;
  return took.count() / storages_per_iteration;
}

}  // namespace

double planned_ns(std::size_t bytes, int count) {
  ebb::Runtime rt;
  ebb::Loop loop(rt);
  for (int i = 0; i < 3; ++i) {
    iteration_ns(loop, bytes);
  }
  if (!loop.wait_plan()) {
    throw std::logic_error("[planned_ns] the plan is not made");
  }
  iteration_ns(loop, bytes);
  std::vector<double> times;
  const int iterations = std::max(1, count / storages_per_iteration);
  const std::uint64_t followed = loop.plans()[0].stats.followed;
  for (int i = 0; i < iterations; ++i) {
    times.push_back(iteration_ns(loop, bytes));
  }
  if (loop.plans()[0].stats.followed != followed + static_cast<std::uint64_t>(iterations)) {
    throw std::logic_error("[planned_ns] the plan was not followed");
  }
  return undisturbed(std::move(times));
}

}  // namespace ebb::bench
