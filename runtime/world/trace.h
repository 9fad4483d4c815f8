// SPDX-License-Identifier: Apache-2.0
// What a program allocated, in order, cut into iterations. Used by `ebb replay`. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ebb::world {

struct TraceEvent {
  std::uint32_t block = 0;   // numbered by their allocations
  std::uint32_t thread = 0;  // numbered from 0
  bool is_free = false;
};

struct Trace {
  std::vector<std::uint64_t> bytes;  // of each block, as asked for
  std::vector<TraceEvent> events;    // each block is allocated once, and freed at most once, later
  // Where in events each iteration begins, and where the last one ends; empty without iterations.
  // What comes before belongs to none, nor does what comes after.
  std::vector<std::size_t> marks;
  std::uint32_t threads = 0;
  std::uint32_t loop_thread = 0;  // that iterates
  // Iterations that were made to deviate: the first, and how many.
  std::size_t deviating_from = 0;
  std::size_t deviating = 0;

  std::size_t iterations() const noexcept { return marks.empty() ? 0 : marks.size() - 1; }
  std::span<const TraceEvent> iteration(std::size_t i) const noexcept {
    return std::span(events).subspan(marks[i], marks[i + 1] - marks[i]);
  }
  std::span<const TraceEvent> before() const noexcept {
    return std::span(events).first(marks.empty() ? events.size() : marks.front());
  }
  std::span<const TraceEvent> after() const noexcept {
    return std::span(events).subspan(marks.empty() ? events.size() : marks.back());
  }
};

}  // namespace ebb::world
