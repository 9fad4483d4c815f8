// SPDX-License-Identifier: Apache-2.0
// What a stage of loading has done so far, by one thread. Written by that thread, read by any.
#pragma once

#include <ebb/loaders/loader.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ebb::inline v0::detail {

// Relaxed throughout: figures. One thread writes, or several, each addition as a whole.
class StageClock {
 public:
  void add(std::uint64_t samples, std::uint64_t bytes, std::chrono::nanoseconds busy) noexcept {
    samples_.fetch_add(samples, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    busy_.fetch_add(static_cast<std::uint64_t>(busy.count()), std::memory_order_relaxed);
  }
  void add_failure() noexcept { failures_.fetch_add(1, std::memory_order_relaxed); }
  void add_to(LoaderStageStats& stats) const noexcept {
    stats.samples += samples_.load(std::memory_order_relaxed);
    stats.bytes = stats.bytes + Bytes{bytes_.load(std::memory_order_relaxed)};
    stats.busy += std::chrono::nanoseconds(busy_.load(std::memory_order_relaxed));
    stats.failures += failures_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> samples_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> busy_{0};
  std::atomic<std::uint64_t> failures_{0};
};

struct StageClocks {
  void add_to(LoaderStats& stats) const noexcept {
    fetch.add_to(stats.fetch);
    decode.add_to(stats.decode);
    write.add_to(stats.write);
  }

  StageClock fetch;
  StageClock decode;
  StageClock write;
};

}  // namespace ebb::inline v0::detail
