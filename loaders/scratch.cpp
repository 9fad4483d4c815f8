// SPDX-License-Identifier: Apache-2.0
// Scratch memory: one block in the steady state, a chain while a sample asks for more than before.
#include "scratch.h"

#include <ebb/gc/birth.h>

#include <algorithm>

namespace ebb::inline v0::detail {

std::span<std::byte> Scratch::take(Bytes bytes) {
  constexpr std::size_t unit = default_align_cpu.value();
  const std::size_t rounded = (bytes + Bytes{unit - 1}).count() / unit * unit;
  if (blocks_.empty() || blocks_.back().bytes().count() - used_ < rounded) {
    const std::size_t size = blocks_.empty() ? std::max(wanted_, rounded) : rounded;
    blocks_.push_back(
        Storage::make(owner_, Bytes{size}, default_align_cpu, Birth{Place::here(), {}}));
    used_ = 0;
  }
  auto* const begin = static_cast<std::byte*>(blocks_.back().data()) + used_;
  used_ += rounded;
  return {begin, bytes.count()};
}

void Scratch::reset() noexcept {
  used_ = 0;
  if (blocks_.size() > 1 || !keeps_) {
    std::size_t total = 0;
    for (const Storage& block : blocks_) {
      total += block.bytes().count();
    }
    wanted_ = std::max(wanted_, total);
    blocks_.clear();
  }
}

}  // namespace ebb::inline v0::detail
