// SPDX-License-Identifier: Apache-2.0
// Backtraces of where chosen storages of an iteration are made: those whose number straggled
// before. Private to gc. Belongs to an owner record; used by its opening thread only. [gc.report]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ebb::inline v0::detail {

class Traces {
 public:
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  static constexpr std::size_t most = 16;

  // Forgets what was taken, and watches the first most of numbers, which ascend. Returns the first
  // one, or never. Throws std::bad_alloc.
  std::uint64_t arm(std::span<const std::uint64_t> numbers);
  bool is_armed() const noexcept { return !traces_.empty(); }
  // Forgets what was taken, and watches nothing.
  void disarm() noexcept {
    traces_.clear();
    next_ = 0;
  }
  // Takes the calling thread's backtrace for number, which arm or take returned; returns the next
  // one to be traced, or never.
  std::uint64_t take(std::uint64_t number) noexcept;
  // Returns the frames of the storage with that number, innermost first, as "function (file+0x12)";
  // empty when there are none. Frames of ebb's own at the inner end are left out.
  std::vector<std::string> describe(std::uint64_t number) const;

 private:
  static constexpr std::size_t frames_most = 32;
  struct Trace {
    std::uint64_t number;
    int depth;
    std::array<void*, frames_most> frames;
  };

  std::vector<Trace> traces_;  // ascending; the first next_ are taken
  std::size_t next_ = 0;
};

}  // namespace ebb::inline v0::detail
