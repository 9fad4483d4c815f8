// SPDX-License-Identifier: Apache-2.0
#include "iteration_plan.h"
#include "region.h"

#include <ebb/alloc/batch_fit.h>
#include <ebb/alloc/plan.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace ebb::inline v0 {

namespace {

constexpr std::size_t granule = default_align_cpu.value();
// Sums of sizes stay below it, as in plan().
constexpr std::uint64_t total_limit = std::uint64_t{1} << 63;

std::string name(std::size_t number, const SequenceEntry& entry) {
  return "entry " + std::to_string(number) + " (" + entry.place.file + ":" +
         std::to_string(entry.place.line) + ")";
}

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("[scale_sequence] " + what);
}

bool differs_in_size_only(const SequenceEntry& a, const SequenceEntry& b) {
  SequenceEntry resized = a;
  resized.bytes = b.bytes;
  return resized.repeats(b);
}

// How an allocation's size goes with the batch: that of the smallest sample, and more for each
// element beyond.
struct SizeRule {
  std::uint64_t base = 0;
  std::uint64_t slope = 0;
};

// The samples as one sequence with a rule for each size.
class BatchModel {
 public:
  explicit BatchModel(std::span<const BatchSample> samples) {
    std::vector<const BatchSample*> ordered;
    for (const BatchSample& sample : samples) {
      ordered.push_back(&sample);
    }
    std::sort(ordered.begin(), ordered.end(),
              [](const BatchSample* a, const BatchSample* b) { return a->batch < b->batch; });
    check_batches(ordered);
    base_batch_ = ordered.front()->batch;
    sequence_ = ordered.front()->sequence;
    find_rules(*ordered.back());
    for (const BatchSample* sample : ordered) {
      merge(*sample);
    }
  }

  std::size_t size() const { return sequence_.size(); }
  const SequenceEntry& entry(std::size_t i) const { return sequence_[i]; }

  // Returns the size of an entry: below 0 as 0, so that sizes never shrink with the batch; none
  // where it reaches 2^63.
  std::optional<std::uint64_t> bytes(std::size_t i, std::size_t batch) const {
    const auto [base, slope] = rules_[i];
    std::uint64_t change = 0;
    if (batch < base_batch_) {
      const bool overflows = __builtin_mul_overflow(slope, base_batch_ - batch, &change);
      return overflows || change > base ? 0 : base - change;
    }
    if (__builtin_mul_overflow(slope, batch - base_batch_, &change) ||
        change >= total_limit - base) {
      return std::nullopt;
    }
    return base + change;
  }

  AllocationSequence scaled(std::size_t batch) const {
    AllocationSequence scaled = sequence_;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::optional<std::uint64_t> its_bytes = bytes(i, batch);
      if (!its_bytes) {
        refuse(name(i, scaled[i]) + " has 2^63 bytes or more for a batch of " +
               std::to_string(batch));
      }
      if (*its_bytes == 0 && is_negative(i, batch)) {
        refuse(name(i, scaled[i]) + " would have less than 0 bytes for a batch of " +
               std::to_string(batch));
      }
      scaled[i].bytes = Bytes{*its_bytes};
    }
    return scaled;
  }

 private:
  static void check_batches(std::span<const BatchSample* const> ordered) {
    if (ordered.size() < 2) {
      refuse("there are " + std::to_string(ordered.size()) + " samples, two are the least");
    }
    if (ordered.front()->batch == 0) {
      refuse("a sample has a batch of 0");
    }
    for (std::size_t i = 1; i < ordered.size(); ++i) {
      if (ordered[i - 1]->batch == ordered[i]->batch) {
        refuse("two samples have a batch of " + std::to_string(ordered[i]->batch));
      }
    }
  }

  // From the samples that are furthest apart.
  void find_rules(const BatchSample& largest) {
    check_alike(largest);
    const std::uint64_t distance = largest.batch - base_batch_;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::uint64_t base = sequence_[i].bytes.count();
      const std::uint64_t end = largest.sequence[i].bytes.count();
      if (end >= total_limit) {
        refuse(name(i, sequence_[i]) + " has 2^63 bytes or more");
      }
      if (end < base || (end - base) % distance != 0) {
        refuse_size(i, largest);
      }
      rules_.push_back({base, (end - base) / distance});
    }
  }

  void merge(const BatchSample& sample) {
    check_alike(sample);
    for (std::size_t i = 0; i < size(); ++i) {
      const SequenceEntry& other = sample.sequence[i];
      if (bytes(i, sample.batch) != other.bytes.count()) {
        refuse_size(i, sample);
      }
      if (other.align_log2 > 63) {
        refuse(name(i, other) + " is aligned to 2^" + std::to_string(other.align_log2));
      }
      if (other.dies <= i || other.dies > size()) {
        refuse(name(i, other) + " dies at " + std::to_string(other.dies) + ", of " +
               std::to_string(size()));
      }
      sequence_[i].outlast(other);
    }
  }

  void check_alike(const BatchSample& sample) const {
    const std::size_t end = std::min(size(), sample.sequence.size());
    const std::string batches =
        "batches of " + std::to_string(base_batch_) + " and " + std::to_string(sample.batch);
    for (std::size_t i = 0; i < end; ++i) {
      if (!differs_in_size_only(sequence_[i], sample.sequence[i])) {
        refuse(batches + " do not make the same allocations: " + name(i, sequence_[i]) +
               " of the one is not " + name(i, sample.sequence[i]) + " of the other");
      }
    }
    if (size() != sample.sequence.size()) {
      refuse(batches + " do not make the same allocations: " + std::to_string(size()) + " and " +
             std::to_string(sample.sequence.size()));
    }
  }

  [[noreturn]] void refuse_size(std::size_t i, const BatchSample& sample) const {
    refuse(name(i, sequence_[i]) + " does not grow by a fixed number of bytes with the batch: " +
           std::to_string(sequence_[i].bytes.count()) + " bytes for " +
           std::to_string(base_batch_) + ", " + std::to_string(sample.sequence[i].bytes.count()) +
           " for " + std::to_string(sample.batch));
  }

  bool is_negative(std::size_t i, std::size_t batch) const {
    const auto [base, slope] = rules_[i];
    return batch < base_batch_ && slope != 0 && base / slope < base_batch_ - batch;
  }

  std::size_t base_batch_ = 0;
  AllocationSequence sequence_;
  std::vector<SizeRule> rules_;
};

// Bytes that a batch needs, and the plan's share of them.
struct Need {
  std::uint64_t height = 0;
  std::uint64_t outside = 0;
  bool exact = false;

  std::uint64_t all() const { return height + outside; }
};

// What the search asks of batches: unit, 2 * unit, ... The budget is capped at 2^63.
class BatchSearch {
 public:
  BatchSearch(const BatchModel& model, std::size_t unit, std::uint64_t budget, std::uint64_t nodes)
      : model_(model), unit_(unit), budget_(budget), nodes_(nodes) {}

  std::optional<std::uint64_t> least(std::size_t step) const;
  Need need(std::size_t step, std::uint64_t nodes) const;
  bool fits(std::size_t step, std::uint64_t nodes) const {
    return need(step, nodes).all() <= budget_;
  }

  // Returns the last of `most` steps that is not proven too large.
  std::size_t last_possible(std::size_t most) const;
  // Returns the last step that a plan was found for, 0 for none.
  std::size_t last_planned(std::size_t possible) const;

 private:
  struct Blocks {
    std::vector<PlanInterval> intervals;
    std::uint64_t outside = 0;
  };
  std::optional<Blocks> blocks_of(std::size_t step) const;

  const BatchModel& model_;
  const std::size_t unit_;
  const std::uint64_t budget_;
  const std::uint64_t nodes_;
};

// None where sizes overflow.
std::optional<BatchSearch::Blocks> BatchSearch::blocks_of(std::size_t step) const {
  Blocks blocks;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < model_.size(); ++i) {
    const SequenceEntry& entry = model_.entry(i);
    const bool is_placed = detail::IterationPlan::places(entry, granule);
    const std::size_t unit = std::max(granule, std::size_t{1} << entry.align_log2);
    const std::optional<std::uint64_t> asked = model_.bytes(i, unit_ * step);
    if (!asked || *asked > total_limit - unit) {
      return std::nullopt;
    }
    const std::uint64_t bytes = std::max<std::uint64_t>(*asked, 1);
    total += detail::round_up(bytes, unit);
    if (total >= total_limit) {
      return std::nullopt;
    }
    if (is_placed) {
      blocks.intervals.push_back({.id = i, .lower = i, .upper = entry.dies, .size = Bytes{bytes}});
    } else {
      blocks.outside += detail::round_up(bytes, unit);
    }
  }
  return blocks;
}

// No plan needs less; never shrinks from step to step. None where sizes overflow.
std::optional<std::uint64_t> BatchSearch::least(std::size_t step) const {
  const std::optional<Blocks> blocks = blocks_of(step);
  if (!blocks) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> dying(model_.size() + 1);  // by moment: bytes
  std::uint64_t live = 0;
  std::uint64_t most = 0;
  std::size_t moment = 0;
  for (const PlanInterval& interval : blocks->intervals) {
    while (moment < interval.lower) {
      live -= dying[++moment];
    }
    const std::uint64_t size = detail::round_up(interval.size.count(), granule);
    live += size;
    dying[interval.upper] += size;
    most = std::max(most, live);
  }
  return most + blocks->outside;
}

Need BatchSearch::need(std::size_t step, std::uint64_t nodes) const {
  const std::optional<Blocks> blocks = blocks_of(step);
  PlanOptions options;
  options.nodes = nodes;
  const Plan made = plan(blocks->intervals, Align{granule}, options);
  return {made.height.count(), blocks->outside, made.exact};
}

std::size_t BatchSearch::last_possible(std::size_t most) const {
  std::size_t possible = 0;
  for (std::size_t beyond = most; possible < beyond;) {
    const std::size_t middle = beyond - (beyond - possible) / 2;
    const std::optional<std::uint64_t> bound = least(middle);
    if (bound && *bound <= budget_) {
      possible = middle;
    } else {
      beyond = middle - 1;
    }
  }
  return possible;
}

// Plans are little higher than the bound: so down from there, by steps that double, with greedy
// orders; then bisection, the second time with all nodes. The last one that failed is then the next
// of the last one that did not.
std::size_t BatchSearch::last_planned(std::size_t possible) const {
  std::size_t good = possible;
  std::size_t bad = possible + 1;
  for (std::size_t stride = 1; good != 0 && !fits(good, 0); stride *= 2) {
    bad = good;
    good -= std::min(good, stride);
  }
  const auto bisect = [&](std::uint64_t nodes) {
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (fits(middle, nodes) ? good : bad) = middle;
    }
  };
  bisect(0);
  bad = possible + 1;
  bisect(nodes_);
  return good;
}

}  // namespace

AllocationSequence scale_sequence(std::span<const BatchSample> samples, std::size_t batch) {
  if (batch == 0) {
    refuse("a batch of 0");
  }
  return BatchModel(samples).scaled(batch);
}

BatchFit largest_batch(std::span<const BatchSample> samples, Bytes budget,
                       const BatchFitOptions& options) {
  if (options.multiple_of == 0 || options.multiple_of > options.most) {
    throw std::invalid_argument("[largest_batch] no multiple of " +
                                std::to_string(options.multiple_of) + " is in 1 to " +
                                std::to_string(options.most));
  }
  const BatchModel model(samples);
  const BatchSearch search(model, options.multiple_of,
                           std::min<std::uint64_t>(budget.count(), total_limit), options.nodes);
  const std::size_t steps = options.most / options.multiple_of;
  const std::size_t step = search.last_planned(search.last_possible(steps));
  const bool has_next = step < steps && search.least(step + 1);
  const std::optional<Bytes> next =
      has_next ? std::optional(Bytes{search.need(step + 1, options.nodes).all()}) : std::nullopt;
  if (step == 0) {
    throw std::invalid_argument("[largest_batch] nothing fits: a batch of " +
                                std::to_string(options.multiple_of) + " needs " +
                                (next ? std::to_string(next->count()) : "2^63 or more") +
                                " bytes, of " + std::to_string(budget.count()));
  }
  static_cast<void>(model.scaled(step * options.multiple_of));  // throws where the rules end
  const Need need = search.need(step, options.nodes);
  return {.batch = step * options.multiple_of,
          .height = Bytes{need.height},
          .outside = Bytes{need.outside},
          .exact = need.exact,
          .needed_by_next = next};
}

}  // namespace ebb::inline v0
