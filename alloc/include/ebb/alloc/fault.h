// SPDX-License-Identifier: Apache-2.0
// An adaptor that refuses requests on purpose, so that the ways of failure get tested.
// [alloc.adaptor]
// Allocation as the upstream's thread rule says; everything else on any thread: one lock.
#pragma once

#include <ebb/alloc/resource.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

namespace ebb::inline v0 {

// Requests of min_bytes to max_bytes are candidates, counted from 1; the others pass. A candidate
// is refused when its number is in [at, at + times), or by chance.
struct FaultOptions {
  static constexpr std::uint64_t always = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t at = 0;  // 0: none by number
  std::uint64_t times = 1;
  double probability = 0;  // of each candidate, from 0 to 1
  std::uint64_t seed = 0;  // same seed, same candidates refused, whatever the threads
  Bytes min_bytes{0};
  Bytes max_bytes{std::numeric_limits<std::size_t>::max()};
};

class Fault final : public Resource {
 public:
  // upstream must outlive this. Throws std::invalid_argument for a probability outside 0 to 1, or
  // min_bytes above max_bytes.
  Fault(Resource& upstream, FaultOptions options);

  [[nodiscard]] Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                   Stream stream = {}) noexcept override;
  void deallocate(const Block& block) noexcept override;
  OutOfMemoryInfo explain(Bytes asked) const override;
  const char* name() const noexcept override { return "fault"; }

  // Takes new options, and counts from 1 again. Throws as the constructor.
  void rearm(FaultOptions options);

  // Candidates since the last rearm, and how many of them were refused here.
  std::uint64_t candidates() const noexcept;
  std::uint64_t refused() const noexcept;

 private:
  bool refuses(Bytes bytes) noexcept;

  Resource& upstream_;
  mutable std::mutex mutex_;  // guards all below
  FaultOptions options_;
  std::uint64_t candidates_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace ebb::inline v0
