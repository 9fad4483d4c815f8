// SPDX-License-Identifier: Apache-2.0
#include "planned.h"

#include "harness.h"

#include <algorithm>
#include <stdexcept>

namespace ebb::bench {

namespace {

constexpr int storages_per_iteration = 1000;

using Clock = std::chrono::steady_clock;

ebb::Align align_of(const ebb::Owner& owner) {
  return owner.stream().device == ebb::cpu ? ebb::default_align_cpu : ebb::default_align_cuda;
}

double iteration_ns(ebb::Loop& loop, ebb::Bytes bytes) {
  ebb::Iteration it(loop);
  const ebb::Owner owner = it.owner();
  const ebb::Align align = align_of(owner);
  const auto start = Clock::now();
  for (int i = 0; i < storages_per_iteration; ++i) {
    keep_alive(ebb::Storage::make(owner, bytes, align, {ebb::Place::here()}).data());
  }
  const std::chrono::duration<double, std::nano> took = Clock::now() - start;
  return took.count() / storages_per_iteration;
}

double iterations_ns(ebb::Loop& loop, ebb::Bytes bytes, int iterations) {
  std::vector<double> times;
  for (int i = 0; i < iterations; ++i) {
    times.push_back(iteration_ns(loop, bytes));
  }
  return undisturbed(std::move(times));
}

int iterations_of(int count) {
  return std::max(1, count / storages_per_iteration);
}

}  // namespace

double planned_ns(ebb::Runtime& rt, ebb::Bytes bytes, int count) {
  ebb::Loop loop(rt);
  iterations_ns(loop, bytes, 3);
  if (!loop.wait_plan()) {
    throw std::logic_error("[planned_ns] the plan is not made");
  }
  iteration_ns(loop, bytes);
  const int iterations = iterations_of(count);
  const std::uint64_t before = followed(loop);
  const double ns = iterations_ns(loop, bytes, iterations);
  if (followed(loop) != before + static_cast<std::uint64_t>(iterations)) {
    throw std::logic_error("[planned_ns] the plan was not followed");
  }
  return ns;
}

std::uint64_t followed(const ebb::Loop& loop) {
  std::uint64_t sum = 0;
  for (const ebb::LoopPlans& plans : loop.plans()) {
    sum += plans.stats.followed;
  }
  return sum;
}

double unplanned_ns(ebb::Runtime& rt, ebb::Bytes bytes, int count) {
  ebb::Loop loop(rt, {.plans = false});
  iterations_ns(loop, bytes, 3);
  return iterations_ns(loop, bytes, iterations_of(count));
}

}  // namespace ebb::bench
