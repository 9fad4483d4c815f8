// SPDX-License-Identifier: Apache-2.0
// An adaptor that refuses what would exceed a number of bytes. [alloc.adaptor]
// Allocation as the upstream's thread rule says; deallocate, figures and set_limit on any thread.
#pragma once

#include <ebb/alloc/resource.h>

#include <atomic>
#include <cstddef>

namespace ebb::inline v0 {

// Counts exactly the bytes that were asked for, not what the upstream sets aside for them. Where
// several threads allocate, a request that the upstream is about to refuse counts until it has.
class Limit final : public Resource {
 public:
  // upstream must outlive this. A limit of 0 bytes means none, as for pools.
  Limit(Resource& upstream, Bytes limit) noexcept : upstream_(upstream), limit_(limit.count()) {}

  [[nodiscard]] Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                   Stream stream = {}) noexcept override;
  void deallocate(const Block& block) noexcept override;
  OutOfMemoryInfo explain(Bytes asked) const override;
  const char* name() const noexcept override { return "limit"; }

  Bytes live() const noexcept { return Bytes{live_.load(std::memory_order_relaxed)}; }
  Bytes limit() const noexcept { return Bytes{limit_.load(std::memory_order_relaxed)}; }
  // For requests from now on; what is live stays, also above the new limit.
  void set_limit(Bytes limit) noexcept { limit_.store(limit.count(), std::memory_order_relaxed); }

 private:
  bool take(std::size_t bytes) noexcept;

  Resource& upstream_;
  // Relaxed everywhere: figures, by which nothing else is published.
  std::atomic<std::size_t> limit_;
  std::atomic<std::size_t> live_{0};
};

}  // namespace ebb::inline v0
