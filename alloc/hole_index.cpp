// SPDX-License-Identifier: Apache-2.0
// The parts of HoleIndex that no allocation waits for: the report's figure and the full check.
#include "hole_index.h"

namespace ebb::inline v0::detail {

std::size_t HoleIndex::largest() const noexcept {
  for (std::size_t word = word_count; word-- > 0;) {
    if (used_[word] != 0) {
      const auto bit = 63 - static_cast<std::size_t>(std::countl_zero(used_[word]));
      return bins_[word * 64 + bit].last()->size;
    }
  }
  return 0;
}

bool HoleIndex::is_valid() const noexcept {
  std::size_t by_size = 0;
  for (std::size_t bin = 0; bin < bin_count; ++bin) {
    const bool used = (used_[bin / 64] >> bin % 64 & 1) != 0;
    if (used == bins_[bin].empty() || !bins_[bin].is_valid(by_size)) {
      return false;
    }
    for (HeapRecord* hole = bins_[bin].first(); hole != nullptr;
         hole = Treap<BySize>::next(*hole)) {
      if (bin_of(hole->size) != bin || hole->kind() != RecordKind::hole) {
        return false;
      }
    }
  }
  std::size_t by_address = 0;
  return by_address_.is_valid(by_address) && by_size == count_ && by_address == count_;
}

}  // namespace ebb::inline v0::detail
