// SPDX-License-Identifier: Apache-2.0
#include "trace_deviation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace ebb::world {

namespace {

constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t first_repeated = 2;
constexpr std::uint64_t latest = 64;  // events of the iteration

// SplitMix64: the standard library's distributions differ between libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t below(std::uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t x = state_;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % bound;
  }
  double unit() { return static_cast<double>(below(std::uint64_t{1} << 53)) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

class Deviator {
 public:
  Deviator(const Trace& trace, double percent, std::uint64_t seed)
      : trace_(trace),
        share_(percent / 100),
        random_(seed),
        now_as_(trace.bytes.size(), nobody),
        is_late_(trace.bytes.size()) {}

  Trace make() {
    if (trace_.iterations() <= first_repeated) {
      return trace_;
    }
    const std::size_t last = trace_.iterations() - 1;
    made_ = trace_;
    made_.events.resize(trace_.marks[last]);
    made_.marks.pop_back();
    made_.deviating_from = last;
    for (std::size_t i = first_repeated; i <= last; ++i) {
      repeat(trace_.iteration(i));
      made_.marks.push_back(made_.events.size());
    }
    made_.deviating = made_.iterations() - last;
    append(trace_.iteration(last));
    made_.marks.push_back(made_.events.size());
    append(trace_.after());
    return std::move(made_);
  }

 private:
  enum class Kind : std::uint8_t { skip, insert, resize, late, none };

  struct LateFree {
    std::size_t when = 0;
    std::uint32_t block = 0;
    std::uint32_t thread = 0;
  };

  void repeat(std::span<const TraceEvent> events) {
    choose_kinds(events);
    for (std::size_t now = 0; now < events.size(); ++now) {
      free_late_ones(now);
      if (!events[now].is_free) {
        repeat_allocation(events, now);
      } else if (const std::uint32_t block = std::exchange(now_as_[events[now].block], nobody);
                 block != nobody) {
        repeat_free(events[now], block, now);
      }
    }
    free_late_ones(std::numeric_limits<std::size_t>::max());
  }

  // What repeats a block and is alive goes with it.
  void append(std::span<const TraceEvent> events) {
    for (const TraceEvent& event : events) {
      made_.events.push_back(event);
      if (event.is_free && now_as_[event.block] != nobody) {
        free(now_as_[event.block], event.thread);
      }
    }
  }

  void choose_kinds(std::span<const TraceEvent> events) {
    kinds_.assign(events.size(), Kind::none);
    sizes_.clear();
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!events[i].is_free) {
        sizes_.push_back(trace_.bytes[events[i].block]);
        if (random_.unit() < share_) {
          kinds_[i] = static_cast<Kind>(random_.below(4));
        }
      }
    }
  }

  void repeat_allocation(std::span<const TraceEvent> events, std::size_t now) {
    const TraceEvent& event = events[now];
    std::uint64_t bytes = trace_.bytes[event.block];
    switch (kinds_[now]) {
      case Kind::skip:
        return;
      case Kind::insert: {
        const std::uint64_t its_bytes = sizes_[random_.below(sizes_.size())];
        put_off(allocate(its_bytes, event.thread), event.thread, now);
        break;
      }
      case Kind::resize:
        bytes = static_cast<std::uint64_t>(
            std::llround(static_cast<double>(bytes) * (0.5 + 1.5 * random_.unit())));
        break;
      case Kind::late:
      case Kind::none:
        break;
    }
    now_as_[event.block] = allocate(bytes, event.thread);
    is_late_[event.block] = kinds_[now] == Kind::late;
  }

  void repeat_free(const TraceEvent& event, std::uint32_t block, std::size_t now) {
    if (is_late_[event.block]) {
      put_off(block, event.thread, now);
    } else {
      free(block, event.thread);
    }
  }

  std::uint32_t allocate(std::uint64_t bytes, std::uint32_t thread) {
    const auto block = static_cast<std::uint32_t>(made_.bytes.size());
    made_.bytes.push_back(bytes);
    made_.events.push_back({.block = block, .thread = thread, .is_free = false});
    return block;
  }
  void free(std::uint32_t block, std::uint32_t thread) {
    made_.events.push_back({.block = block, .thread = thread, .is_free = true});
  }

  void put_off(std::uint32_t block, std::uint32_t thread, std::size_t now) {
    late_.push_back({.when = now + 1 + random_.below(latest), .block = block, .thread = thread});
  }
  void free_late_ones(std::size_t now) {
    for (const LateFree& late : late_) {
      if (late.when <= now) {
        free(late.block, late.thread);
      }
    }
    std::erase_if(late_, [now](const LateFree& late) { return late.when <= now; });
  }

  const Trace& trace_;
  const double share_;
  Random random_;
  std::vector<std::uint32_t> now_as_;  // by block of the trace: what repeats it, while it lives
  std::vector<bool> is_late_;          // by block of the trace
  std::vector<Kind> kinds_;            // by event of the iteration
  std::vector<std::uint64_t> sizes_;   // of the iteration's blocks
  std::vector<LateFree> late_;
  Trace made_;
};

}  // namespace

Trace with_deviations(const Trace& trace, double percent, std::uint64_t seed) {
  return Deviator(trace, percent, seed).make();
}

}  // namespace ebb::world
