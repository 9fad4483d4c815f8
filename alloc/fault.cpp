// SPDX-License-Identifier: Apache-2.0
// Refusals by number, by chance and by size. Any thread.
#include "layer.h"

#include <ebb/alloc/fault.h>

namespace ebb::inline v0 {

namespace {

void require_sound(const FaultOptions& options) {
  EBB_REQUIRE(options.probability >= 0 && options.probability <= 1, "Fault",
              "a probability lies between 0 and 1");
  EBB_REQUIRE(options.min_bytes <= options.max_bytes, "Fault", "min_bytes is above max_bytes");
}

// A number in [0, 1) that seed and n alone decide: two rounds of multiply and shift.
double chance(std::uint64_t seed, std::uint64_t n) noexcept {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15U + n;
  for (int round = 0; round < 2; ++round) {
    x ^= x >> 32U;
    x *= 0xd6e8feb86659fd93U;
  }
  x ^= x >> 32U;
  return static_cast<double>(x >> 11U) * 0x1p-53;
}

}  // namespace

Fault::Fault(Resource& upstream, FaultOptions options) : upstream_(upstream), options_(options) {
  require_sound(options);
}

void Fault::rearm(FaultOptions options) {
  require_sound(options);
  const std::lock_guard lock(mutex_);
  options_ = options;
  candidates_ = 0;
  refused_ = 0;
}

bool Fault::refuses(Bytes bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (bytes < options_.min_bytes || bytes > options_.max_bytes) {
    return false;
  }
  const std::uint64_t number = ++candidates_;
  const bool by_number =
      options_.at != 0 && number >= options_.at && number - options_.at < options_.times;
  const bool refused = by_number || chance(options_.seed, number) < options_.probability;
  refused_ += refused ? 1 : 0;
  return refused;
}

Block Fault::try_allocate(Bytes bytes, Align align, Stream stream) noexcept {
  if (refuses(bytes)) {
    return {};
  }
  return detail::take_over(upstream_.try_allocate(bytes, align, stream), *this);
}

void Fault::deallocate(const Block& block) noexcept {
  EBB_ASSERT(detail::is_from(block, *this));  // else freed twice, or another's
  detail::hand_down(block, upstream_);
}

OutOfMemoryInfo Fault::explain(Bytes asked) const {
  return detail::explain_through(*this, upstream_, asked);
}

std::uint64_t Fault::candidates() const noexcept {
  const std::lock_guard lock(mutex_);
  return candidates_;
}

std::uint64_t Fault::refused() const noexcept {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace ebb::inline v0
