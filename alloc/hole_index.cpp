// SPDX-License-Identifier: Apache-2.0
// The parts of HoleIndex that no allocation waits for: the report's figure and the full check.
#include "hole_index.h"

#include <algorithm>

namespace ebb::inline v0::detail {

std::size_t SizeIndex::largest() const noexcept {
  for (std::size_t word = word_count; word-- > 0;) {
    if (used_[word] != 0) {
      const auto bit = 63 - static_cast<std::size_t>(std::countl_zero(used_[word]));
      return bins_[word * 64 + bit].last()->size;
    }
  }
  return 0;
}

bool SizeIndex::empty() const noexcept {
  return std::all_of(used_.begin(), used_.end(), [](std::uint64_t word) { return word == 0; });
}

bool SizeIndex::is_valid(std::uint32_t lane, std::size_t& count) const noexcept {
  for (std::size_t bin = 0; bin < bin_count; ++bin) {
    const bool used = (used_[bin / 64] >> bin % 64 & 1) != 0;
    if (used == bins_[bin].empty() || !bins_[bin].is_valid(count)) {
      return false;
    }
    for (HeapRecord* hole = bins_[bin].first(); hole != nullptr;
         hole = Treap<BySize>::next(*hole)) {
      if (bin_of(hole->size) != bin || hole->kind() != RecordKind::hole || hole->lane() != lane) {
        return false;
      }
    }
  }
  return true;
}

std::size_t HoleIndex::largest() const noexcept {
  std::size_t most = 0;
  for_each_lane([&most](std::uint32_t, const SizeIndex& holes) {
    most = std::max(most, holes.largest());
    return true;
  });
  return most;
}

bool HoleIndex::is_valid() const noexcept {
  std::size_t by_size = 0;
  bool valid = true;
  for_each_lane([&](std::uint32_t lane, const SizeIndex& holes) {
    valid = holes.is_valid(lane, by_size);
    return valid;
  });
  std::size_t by_address = 0;
  return valid && by_address_.is_valid(by_address) && by_size == count_ && by_address == count_;
}

}  // namespace ebb::inline v0::detail
