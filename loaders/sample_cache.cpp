// SPDX-License-Identifier: Apache-2.0
// Which decoded samples are kept: a threshold on the cost of a byte, learned from those offered.
#include "sample_cache.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <string>

namespace ebb::inline v0::detail {

namespace {

// What an entry takes beside its bytes: the map's node, the storage's cell.
constexpr std::uint64_t entry_bytes = 192;

}  // namespace

SampleCache::SampleCache(Domain& domain, const std::string& name, Bytes budget,
                         std::uint64_t samples, const Birth& birth)
    : domain_(domain),
      budget_(budget.count()),
      samples_(samples),
      birth_(birth),
      pool_(domain.make_pool("cache of loader " + name, Bytes{}, Milliseconds{0})),
      owner_(domain.open_loader_owner(pool_)) {}

SampleCache::~SampleCache() {
  for (Shard& shard : shards_) {
    shard.kept.clear();
  }
  domain_.close_loader_owner(owner_);
}

Storage SampleCache::find(std::uint64_t index) noexcept {
  const Shard& shard = shard_of(index);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.kept.find(index);
  const bool hit = found != shard.kept.end();
  (hit ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
  return hit ? found->second : Storage{};
}

bool SampleCache::contains(std::uint64_t index) const noexcept {
  const Shard& shard = shard_of(index);
  const std::lock_guard lock(shard.mutex);
  return shard.kept.contains(index);
}

std::size_t SampleCache::class_of(std::size_t bytes, std::chrono::nanoseconds cost) noexcept {
  const double unit = 1024.0 * static_cast<double>(std::max<std::int64_t>(cost.count(), 1)) /
                      static_cast<double>(std::max<std::size_t>(bytes, 1));
  const double place = 2 * std::log2(std::max(unit, 1.0));
  return std::min(static_cast<std::size_t>(place), classes - 1);
}

// The cheapest classes go without, as many as there is no room for: of the bytes that are still to
// come, by what came so far.
bool SampleCache::is_worth(std::size_t bytes, std::size_t cost_class) noexcept {
  const std::lock_guard lock(offers_mutex_);
  bytes_by_class_[cost_class] += bytes;
  offered_bytes_ += bytes;
  ++offered_;
  const std::uint64_t kept = kept_bytes_.load(std::memory_order_relaxed);
  if (kept + bytes + entry_bytes > budget_) {
    return false;
  }
  const double mean = static_cast<double>(offered_bytes_) / static_cast<double>(offered_);
  const auto to_come = static_cast<double>(samples_ - std::min(offered_ - 1, samples_ - 1));
  const double room = static_cast<double>(budget_ - kept);
  const double share = room / (to_come * (mean + static_cast<double>(entry_bytes)));
  if (share >= 1) {
    return true;
  }
  double dearer = 0;
  for (std::size_t i = cost_class + 1; i < classes; ++i) {
    dearer += static_cast<double>(bytes_by_class_[i]);
  }
  return dearer < share * static_cast<double>(offered_bytes_);
}

void SampleCache::offer(std::uint64_t index, std::span<const std::byte> decoded,
                        std::chrono::nanoseconds cost) noexcept {
  if (!is_worth(decoded.size(), class_of(decoded.size(), cost))) {
    return;
  }
  const std::uint64_t size = decoded.size() + entry_bytes;
  const std::uint64_t before = kept_bytes_.fetch_add(size, std::memory_order_relaxed);
  bool is_kept = false;
  try {
    if (before + size <= budget_) {
      const OwnerScope scope(owner_, HeapStay::with_scope);
      Storage copy = Storage::make(owner_, Bytes{decoded.size()}, default_align_cpu, birth_);
      std::memcpy(copy.data(), decoded.data(), decoded.size());
      Shard& shard = shard_of(index);
      const std::lock_guard lock(shard.mutex);
      is_kept = shard.kept.try_emplace(index, std::move(copy)).second;
    }
  } catch (const std::bad_alloc&) {  // then it is decoded again
  }
  if (is_kept) {
    kept_.fetch_add(1, std::memory_order_relaxed);
  } else {
    kept_bytes_.fetch_sub(size, std::memory_order_relaxed);
  }
}

LoaderCacheStats SampleCache::stats() const noexcept {
  return {.hits = hits_.load(std::memory_order_relaxed),
          .misses = misses_.load(std::memory_order_relaxed),
          .samples = kept_.load(std::memory_order_relaxed),
          .bytes = Bytes{kept_bytes_.load(std::memory_order_relaxed)}};
}

}  // namespace ebb::inline v0::detail
