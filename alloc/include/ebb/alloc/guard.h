// SPDX-License-Identifier: Apache-2.0
// An adaptor that finds writes beyond a block, writes after its end, and blocks given back twice or
// to the wrong resource. [alloc.adaptor]
// Allocation as the upstream's thread rule says; deallocate and flush on any thread.
#pragma once

#include <ebb/alloc/resource.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ebb::inline v0 {

enum class GuardFault : std::uint32_t {
  damaged_before,      // bytes before the block were written
  damaged_after,       // bytes after the block were written
  written_after_free,  // bytes of the block were written after it was given back
  freed_twice,
  foreign,  // given back, but not handed out by this guard
};

// What a guard found. offset is where, counted from data: negative before the block.
struct GuardReport {
  GuardFault fault = GuardFault::foreign;
  const void* data = nullptr;
  Bytes bytes;
  std::ptrdiff_t offset = 0;
  const char* resource = "";  // the guard's upstream
};

struct GuardOptions {
  // Called with what was found, on the thread that found it. Null: print it and abort.
  void (*report)(void* context, const GuardReport& report) noexcept = nullptr;
  void* context = nullptr;
  // Blocks given back that are kept, filled, until that many more were: at most quarantine_max, and
  // this many bytes in all.
  std::size_t quarantine = 32;
  Bytes quarantine_bytes{std::size_t{1} << 20};
};

// Puts canaries before and after each block, fills its bytes when it is handed out and when it is
// given back, and checks both. For host memory: blocks of streams of other devices pass through.
// After a report about a block's bytes the block is released as usual; one that was freed twice or
// is foreign is left alone. A second free is found for certain while the block is in quarantine;
// after that as long as its record is there and not used again, which of heaps it mostly is. A
// request that the upstream refuses empties the quarantine first.
class Guard final : public Resource {
 public:
  static constexpr std::size_t quarantine_max = 64;
  static constexpr unsigned char fresh_byte = 0xcd;
  static constexpr unsigned char freed_byte = 0xdd;

  // upstream must outlive this. Throws std::invalid_argument when the quarantine is too large.
  explicit Guard(Resource& upstream, GuardOptions options = {});
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  Guard(Guard&&) = delete;
  Guard& operator=(Guard&&) = delete;
  // Checks and releases what is in quarantine.
  ~Guard() override;

  [[nodiscard]] Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                   Stream stream = {}) noexcept override;
  void deallocate(const Block& block) noexcept override;
  OutOfMemoryInfo explain(Bytes asked) const override;
  const char* name() const noexcept override { return "guard"; }

  // Checks and releases what is in quarantine, now. Returns how many blocks.
  std::size_t flush() noexcept;

 private:
  void hold(const Block& block) noexcept;
  bool take_oldest(Block& block, std::size_t blocks_max, std::size_t bytes_max) noexcept;
  // With mutex_ held, and when there is one.
  Block pop_oldest() noexcept;
  void release_checked(const Block& block) noexcept;
  void give_down(const Block& block) noexcept;
  void check_canaries(const Block& block) const noexcept;
  void report(GuardFault fault, const Block& block, std::ptrdiff_t offset) const noexcept;

  Resource& upstream_;
  const GuardOptions options_;
  std::mutex mutex_;  // guards the ring; never held while the upstream is called
  std::array<Block, quarantine_max + 1> held_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t held_bytes_ = 0;
};

}  // namespace ebb::inline v0
