// SPDX-License-Identifier: Apache-2.0
// An adaptor that counts what passes through it. [alloc.adaptor] (MemoryStats, the figures of heaps
// and pools, are in stats.h.)
// Allocation as the upstream's thread rule says; everything else on any thread: one lock.
#pragma once

#include <ebb/alloc/resource.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ebb::inline v0 {

// One figure since counting began. In nested figures current is negative when more was freed than
// allocated since, and peak is never below zero.
struct StatsFigure {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::uint64_t total = 0;  // everything ever allocated
};

struct StatsFigures {
  StatsFigure bytes;  // as asked for
  StatsFigure blocks;
  std::uint64_t refusals = 0;
};

// Counts bytes and blocks, over all and in nested sections:
//
//   ebb::Stats stats(heap);
//   stats.push();
//   step(stats);
//   std::int64_t peak = stats.pop().bytes.peak;   // above what was live before the step
class Stats final : public Resource {
 public:
  // push() may be nested this deep.
  static constexpr std::size_t depth_max = 16;

  // upstream must outlive this.
  explicit Stats(Resource& upstream) noexcept : upstream_(upstream) {}

  [[nodiscard]] Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                   Stream stream = {}) noexcept override;
  void deallocate(const Block& block) noexcept override;
  OutOfMemoryInfo explain(Bytes asked) const override;
  const char* name() const noexcept override { return "stats"; }

  // Returns the figures since this was made.
  StatsFigures figures() const noexcept;
  // Begins a nested section, whose figures start at zero. Throws std::invalid_argument when
  // depth_max are open.
  void push();
  // Ends the innermost section and returns its figures. Throws std::invalid_argument without one.
  StatsFigures pop();

 private:
  template <class Change>
  void change_all(Change change) noexcept;

  Resource& upstream_;
  mutable std::mutex mutex_;
  std::array<StatsFigures, depth_max + 1> levels_{};  // the first is the whole
  std::size_t depth_ = 0;
};

}  // namespace ebb::inline v0
