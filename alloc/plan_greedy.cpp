// SPDX-License-Identifier: Apache-2.0
#include "plan_greedy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace ebb::inline v0 {

namespace {

enum class Fit { first, best };

struct Order {
  double (*key)(double size, double width);  // larger is placed earlier
  Fit fit;
};

// Large first is best on most traces; where a few long-lived buffers would cut the space up, they
// have to come earlier than their size says.
constexpr std::array orders = {
    Order{[](double size, double) { return size; }, Fit::first},
    Order{[](double size, double width) { return size * std::sqrt(width); }, Fit::best},
    Order{[](double size, double width) { return size * std::pow(width, 0.1); }, Fit::first},
    Order{
        [](double size, double width) { return std::floor(std::log2(width) / 2) + size * 0x1p-63; },
        Fit::best},
    Order{[](double size, double width) { return std::floor(std::log2(width)) + size * 0x1p-63; },
          Fit::best},
    Order{[](double size, double width) { return size * width; }, Fit::first},
    Order{[](double size, double width) { return width + size * 0x1p-63; }, Fit::best},
    Order{[](double size, double width) { return std::floor(std::log2(size)) + width * 0x1p-64; },
          Fit::first},
};

// Comparisons of two buffers, after which no further order is begun.
constexpr std::uint64_t work_limit = 400'000'000;

std::vector<std::uint32_t> sorted_by(const PlanProblem& problem, const Order& order) {
  std::vector<double> keys;
  for (const PlanBuffer& buffer : problem.buffers) {
    keys.push_back(order.key(static_cast<double>(buffer.size), static_cast<double>(buffer.width)));
  }
  std::vector<std::uint32_t> sorted(keys.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  return sorted;
}

struct Placed {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t first;
  std::uint32_t last;
  std::uint32_t buffer;
};

// One order's run.
class Packing {
 public:
  Packing(const PlanProblem& problem, const PlanLanes& lanes) : problem_(problem), lanes_(lanes) {
    placed_.reserve(problem.buffers.size());
    draft_.offsets.resize(problem.buffers.size());
  }

  // Returns false once the height reaches the limit: somebody else's plan is no worse.
  bool place_all(const std::vector<std::uint32_t>& order, Fit fit, std::uint64_t limit) {
    for (const std::uint32_t buffer : order) {
      const std::uint64_t begin =
          lanes_.several()
              ? find_hole(
                    buffer, fit,
                    [&](const Placed& other) { return lanes_.conflict(other.buffer, buffer); })
              : find_hole(buffer, fit, [at = problem_.buffers[buffer]](const Placed& other) {
                  return other.first <= at.last && at.first <= other.last;
                });
      put(buffer, begin);
      if (draft_.height >= limit) {
        return false;
      }
    }
    return true;
  }

  std::uint64_t work() const { return work_; }
  PlanDraft take() { return std::move(draft_); }

 private:
  template <class Conflict>
  std::uint64_t find_hole(std::uint32_t buffer, Fit fit, const Conflict& conflict) {
    const std::uint64_t size = problem_.buffers[buffer].size;
    std::uint64_t floor = 0;  // where what was passed so far ends
    std::uint64_t best = 0;
    std::uint64_t best_room = std::numeric_limits<std::uint64_t>::max();
    for (const Placed& other : placed_) {
      ++work_;
      if (!conflict(other)) {
        continue;
      }
      const std::uint64_t room = other.begin > floor ? other.begin - floor : 0;
      if (room >= size && room < best_room) {
        if (fit == Fit::first) {
          return floor;
        }
        best = floor;
        best_room = room;
      }
      floor = std::max(floor, other.end);
    }
    return best_room == std::numeric_limits<std::uint64_t>::max() ? floor : best;
  }

  void put(std::uint32_t buffer, std::uint64_t begin) {
    const PlanBuffer& at = problem_.buffers[buffer];
    const Placed placed{begin, begin + at.size, at.first, at.last, buffer};
    const auto after = [](std::uint64_t value, const Placed& other) { return value < other.begin; };
    placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), begin, after), placed);
    draft_.offsets[buffer] = begin;
    draft_.height = std::max(draft_.height, placed.end);
  }

  const PlanProblem& problem_;
  const PlanLanes& lanes_;
  std::vector<Placed> placed_;  // by begin
  PlanDraft draft_;
  std::uint64_t work_ = 0;
};

}  // namespace

PlanDraft greedy_plan(const PlanProblem& problem, const PlanLanes& lanes, std::uint64_t good_enough,
                      const std::function<bool()>& cancel) {
  PlanDraft best;
  std::uint64_t work = 0;
  for (const Order& order : orders) {
    const bool first = &order == orders.data();
    if (!first && (best.height <= good_enough || work >= work_limit || (cancel && cancel()))) {
      break;
    }
    Packing packing(problem, lanes);
    const std::uint64_t limit = first ? std::numeric_limits<std::uint64_t>::max() : best.height;
    if (packing.place_all(sorted_by(problem, order), order.fit, limit)) {
      best = packing.take();
    }
    work += packing.work();
  }
  return best;
}

}  // namespace ebb::inline v0
