// SPDX-License-Identifier: Apache-2.0
// Decoded samples that are kept for later epochs, within a budget of bytes. Used by a loader's
// workers. Thread-safe. [load.cache]
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/gc/birth.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/storage.h>
#include <ebb/loaders/loader.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>

namespace ebb::inline v0::detail {

// In an epoch that shuffles, each sample is asked for once: which one is used next is as good as
// any other, so nothing is ever evicted, and what counts is how long a sample takes to decode for
// each byte that it takes. Those are kept for which that is above a threshold, which follows what
// is left of the budget and of the samples that were not seen yet.
class SampleCache {
 public:
  // Throws OutOfMemory. samples: of the data set.
  SampleCache(Domain& domain, const std::string& name, Bytes budget, std::uint64_t samples,
              const Birth& birth);
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;
  SampleCache(SampleCache&&) = delete;
  SampleCache& operator=(SampleCache&&) = delete;
  ~SampleCache();

  // Returns what is kept of a sample, or nothing.
  Storage find(std::uint64_t index) noexcept;
  bool contains(std::uint64_t index) const noexcept;
  // Keeps a copy, if it is worth its bytes and there is room; a sample is offered once.
  void offer(std::uint64_t index, std::span<const std::byte> decoded,
             std::chrono::nanoseconds cost) noexcept;

  LoaderCacheStats stats() const noexcept;

 private:
  // Costs by powers of the square root of 2, in nanoseconds for 1024 bytes.
  static constexpr std::size_t classes = 96;
  static constexpr std::size_t shards = 64;

  struct Shard {
    mutable std::mutex mutex;  // guards kept
    std::unordered_map<std::uint64_t, Storage> kept;
  };

  static std::size_t class_of(std::size_t bytes, std::chrono::nanoseconds cost) noexcept;
  bool is_worth(std::size_t bytes, std::size_t cost_class) noexcept;
  Shard& shard_of(std::uint64_t index) noexcept { return shards_[index % shards]; }
  const Shard& shard_of(std::uint64_t index) const noexcept { return shards_[index % shards]; }

  Domain& domain_;
  const std::uint64_t budget_;
  const std::uint64_t samples_;
  const Birth birth_;
  Pool pool_;
  const Owner owner_;
  std::array<Shard, shards> shards_;

  std::mutex offers_mutex_;                              // guards the next three
  std::array<std::uint64_t, classes> bytes_by_class_{};  // of all that were offered
  std::uint64_t offered_ = 0;
  std::uint64_t offered_bytes_ = 0;

  // Relaxed: a sum that is asked before a copy is made, and figures.
  std::atomic<std::uint64_t> kept_bytes_{0};
  std::atomic<std::uint64_t> kept_{0};
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> misses_{0};
};

}  // namespace ebb::inline v0::detail
