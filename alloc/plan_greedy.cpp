// SPDX-License-Identifier: Apache-2.0
#include "plan_greedy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace ebb::inline v0 {

namespace {

enum class Fit { first, best };

struct Shape {
  double size;
  double width;
  double death;  // section
};

using Key = std::pair<double, double>;

struct Order {
  Key (*key)(const Shape&);  // larger is placed earlier
  Fit fit;
};

// Steps of an n-th of a doubling.
double step(double value, double n = 1) {
  return std::floor(n * std::log2(value));
}

// Large first is best on most traces; where a few long-lived buffers would cut the space up, they
// have to come earlier than their size says. Which of many buffers of about the same size comes
// first matters as much: by birth, or backwards by death.
constexpr std::array orders = {
    Order{[](const Shape& s) { return Key(step(s.size, 4), 0); }, Fit::first},
    Order{[](const Shape& s) { return Key(step(s.size, 4), s.death); }, Fit::first},
    Order{[](const Shape& s) { return Key(s.size, 0); }, Fit::first},
    Order{[](const Shape& s) { return Key(s.size * std::sqrt(s.width), 0); }, Fit::best},
    Order{[](const Shape& s) { return Key(s.size * std::pow(s.width, 0.1), 0); }, Fit::first},
    Order{[](const Shape& s) { return Key(step(s.width, 0.5), s.size); }, Fit::best},
    Order{[](const Shape& s) { return Key(step(s.width), s.size); }, Fit::best},
    Order{[](const Shape& s) { return Key(s.size * s.width, 0); }, Fit::first},
    Order{[](const Shape& s) { return Key(s.width, s.size); }, Fit::best},
};

// Buffers passed, after which no further order is begun. One that is in the way costs more.
constexpr std::uint64_t work_limit = 300'000'000;
constexpr std::uint64_t conflict_work = 4;
constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
constexpr std::ptrdiff_t chunk_most = 256;
constexpr std::uint32_t buffers_per_cancel = 64;

// Equals in the order of their births, the shorter ones first.
std::vector<std::uint32_t> sorted_by(const PlanProblem& problem, const Order& order) {
  std::vector<Key> keys;
  for (const PlanBuffer& buffer : problem.buffers) {
    keys.push_back(order.key({static_cast<double>(buffer.size), static_cast<double>(buffer.width),
                              static_cast<double>(buffer.last)}));
  }
  std::vector<std::uint32_t> sorted(keys.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) {
    const PlanBuffer& left = problem.buffers[a];
    const PlanBuffer& right = problem.buffers[b];
    return std::tie(keys[b], left.first, left.last) < std::tie(keys[a], right.first, right.last);
  });
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
  Packing(const PlanProblem& problem, const PlanLanes& lanes,
          std::span<const std::optional<std::uint64_t>> pinned)
      : problem_(problem), lanes_(lanes), pinned_(pinned) {
    draft_.offsets.resize(problem.buffers.size());
    for (std::uint32_t buffer = 0; buffer < pinned.size(); ++buffer) {
      if (pinned[buffer]) {
        put(buffer, *pinned[buffer]);
      }
    }
  }

  // Returns false once the height reaches the limit: somebody else's plan is no worse. What is left
  // when somebody cancels goes on top.
  bool place_all(const std::vector<std::uint32_t>& order, Fit fit, std::uint64_t limit,
                 const std::function<bool()>& cancel) {
    std::uint32_t until_asked = buffers_per_cancel;
    bool cancelled = false;
    for (const std::uint32_t buffer : order) {
      if (!pinned_.empty() && pinned_[buffer]) {
        continue;
      }
      if (cancel && !cancelled && --until_asked == 0) {
        until_asked = buffers_per_cancel;
        cancelled = cancel();
      }
      const std::uint64_t begin = cancelled ? draft_.height : find_hole(buffer, fit);
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
  std::uint64_t find_hole(std::uint32_t buffer, Fit fit) {
    if (lanes_.several()) {
      return find_hole(buffer, fit,
                       [&](const Placed& other) { return lanes_.conflict(other.buffer, buffer); });
    }
    return find_hole(buffer, fit, [at = problem_.buffers[buffer]](const Placed& other) {
      return other.first <= at.last && at.first <= other.last;
    });
  }

  template <class Conflict>
  std::uint64_t find_hole(std::uint32_t buffer, Fit fit, const Conflict& conflict) {
    const std::uint64_t size = problem_.buffers[buffer].size;
    std::uint64_t floor = 0;  // where what was passed so far ends
    std::uint64_t best = 0;
    std::uint64_t best_room = none;
    for (const std::vector<Placed>& chunk : placed_) {
      work_ += chunk.size();
      for (const Placed& other : chunk) {
        if (!conflict(other)) {
          continue;
        }
        work_ += conflict_work;
        const std::uint64_t room = other.begin > floor ? other.begin - floor : 0;
        if (room >= size && room < best_room) {
          best = floor;
          best_room = room;
          if (fit == Fit::first) {
            return best;
          }
        }
        floor = std::max(floor, other.end);
      }
    }
    return best_room == none ? floor : best;
  }

  void put(std::uint32_t buffer, std::uint64_t begin) {
    const PlanBuffer& at = problem_.buffers[buffer];
    const Placed placed{begin, begin + at.size, at.first, at.last, buffer};
    insert(placed);
    draft_.offsets[buffer] = begin;
    draft_.height = std::max(draft_.height, placed.end);
  }

  void insert(const Placed& placed) {
    if (placed_.empty()) {
      placed_.emplace_back();
    }
    // The last chunk that begins no later.
    auto chunk = std::upper_bound(placed_.begin() + 1, placed_.end(), placed.begin,
                                  [](std::uint64_t begin, const std::vector<Placed>& other) {
                                    return begin < other.front().begin;
                                  }) -
                 1;
    const auto after = [](std::uint64_t begin, const Placed& other) { return begin < other.begin; };
    chunk->insert(std::upper_bound(chunk->begin(), chunk->end(), placed.begin, after), placed);
    if (std::ssize(*chunk) == chunk_most) {
      const auto middle = chunk->begin() + chunk_most / 2;
      std::vector<Placed> upper(middle, chunk->end());
      chunk->erase(middle, chunk->end());
      placed_.insert(chunk + 1, std::move(upper));
    }
  }

  const PlanProblem& problem_;
  const PlanLanes& lanes_;
  const std::span<const std::optional<std::uint64_t>> pinned_;
  std::vector<std::vector<Placed>> placed_;  // by begin, in chunks, so that an insertion moves few
  PlanDraft draft_;
  std::uint64_t work_ = 0;
};

}  // namespace

PlanDraft greedy_plan(const PlanProblem& problem, const PlanLanes& lanes, std::uint64_t good_enough,
                      const std::function<bool()>& cancel,
                      std::span<const std::optional<std::uint64_t>> pinned) {
  PlanDraft best;
  std::uint64_t work = 0;
  for (const Order& order : orders) {
    const bool first = &order == orders.data();
    if (!first && (best.height <= good_enough || work >= work_limit || (cancel && cancel()))) {
      break;
    }
    Packing packing(problem, lanes, pinned);
    const std::uint64_t limit = first ? none : best.height;
    if (packing.place_all(sorted_by(problem, order), order.fit, limit, cancel)) {
      best = packing.take();
    }
    work += packing.work();
  }
  return best;
}

}  // namespace ebb::inline v0
