// SPDX-License-Identifier: Apache-2.0
// Whether the running task may use a storage's memory on its stream. [alloc.cuda]
#include "undeclared_use.h"

#include "domain_impl.h"
#include "storage_cell.h"

#include <algorithm>
#include <string>

namespace ebb::inline v0 {
namespace {

std::string describe(const Place& place) {
  return std::string(place.file) + ":" + std::to_string(place.line);
}

}  // namespace

bool detail::UndeclaredUses::note(const Place& made, const Place& used) {
  count_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  const auto is_same = [&](const auto& it) {
    return it.first.is_same_as(made) && it.second.is_same_as(used);
  };
  if (told_.size() == told_most || std::any_of(told_.begin(), told_.end(), is_same)) {
    return false;
  }
  told_.emplace_back(made, used);
  return true;
}

void Storage::check_stream(const Place& at) const {
  const detail::StorageCell& cell = detail::cell_of(head_);
  const Stream current = Owner::current_or_none().stream();
  const BlockRecord* const block = cell.block;
  if (head_->device == cpu || current.device != head_->device || block == nullptr ||
      cell.home->is_used_on(*block, current)) {
    return;
  }
  Domain& domain = *cell.owner.record()->domain;
  if (domain.impl().undeclared.note(cell.birth.place, at)) {
    domain.log(LogLevel::warning,
               "memory of stream " + std::to_string(block->stream.id) + " on " +
                   to_string(current.device) + ", made at " + describe(cell.birth.place) +
                   ", is used on stream " + std::to_string(current.id) + " at " + describe(at) +
                   ", which nobody has declared: it may be somebody else's before that stream is "
                   "done with it. Say used_on(), or use it in a launch()");
  }
}

}  // namespace ebb::inline v0
