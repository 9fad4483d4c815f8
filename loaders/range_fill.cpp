// SPDX-License-Identifier: Apache-2.0
// The walk over some samples of a batch. One thread a walk.
#include "scratch.h"

#include <ebb/loaders/erased_dataset.h>

namespace ebb::inline v0::detail {

RangeFill::RangeFill(const Where& where, const ErasedDataset& dataset, Scratch& scratch) noexcept
    : where_(where) {
  context_.epoch_ = where.epoch;
  context_.seq_ = where.seq;
  context_.seed_ = where.seed;
  context_.scratch_ = &scratch;
  context_.dataset_ = &dataset;
  writer_.spots_ = where.spots;
  writer_.slot_ = where.slot;
}

bool RangeFill::next() noexcept {
  // Relaxed: only whether to go on; what a cancelled batch wrote is never read.
  if (started_ < where_.indices.size() &&
      where_.generation->load(std::memory_order_relaxed) != where_.expected) {
    return false;
  }
  if (started_ >= where_.indices.size()) {
    started_ = where_.indices.size() + 1;
    return false;
  }
  writer_.row_ = where_.row + started_;
  writer_.length_ = where_.lengths.empty() ? 0 : static_cast<std::size_t>(where_.lengths[started_]);
  begin(where_.indices[started_]);
  ++started_;
  return true;
}

void RangeFill::replace_by(std::uint64_t index, std::int64_t length) noexcept {
  writer_.length_ = static_cast<std::size_t>(length);
  begin(index);
}

void RangeFill::begin(std::uint64_t index) noexcept {
  context_.index_ = index;
  context_.key_ = index;
  context_.scratch_->reset();
  where_.current->store(index, std::memory_order_relaxed);
}

}  // namespace ebb::inline v0::detail
